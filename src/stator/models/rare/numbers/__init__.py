"""Numbers that few programs compute with."""
