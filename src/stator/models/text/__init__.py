"""Strings, bytes, and what becomes text."""
