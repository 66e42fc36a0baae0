"""Async generators, and what code objects tell."""
