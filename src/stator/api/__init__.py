"""What users call; `stator` re-exports it."""
