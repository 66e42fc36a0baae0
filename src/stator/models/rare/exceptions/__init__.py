"""Exception groups."""
