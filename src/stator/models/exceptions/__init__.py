"""Exceptions and tracebacks."""
