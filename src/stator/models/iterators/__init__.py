"""Iterators written in C."""
