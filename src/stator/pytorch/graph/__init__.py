"""The FX graph: recording, cleaning, the backend's contract, and what is done when it fails."""
