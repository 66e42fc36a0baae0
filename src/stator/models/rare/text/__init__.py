"""Bytes that can be changed, and views of memory."""
