"""Builtin functions, and C modules of the standard library that have no better room."""
