"""The FX graph: recording, cleaning, and what is done when it fails."""
