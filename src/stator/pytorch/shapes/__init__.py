"""Symbolic sizes and the numbers that depend on them."""
