"""Iterators written in C that few programs need."""
