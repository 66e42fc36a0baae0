"""Sequences of different lengths: what reads the lengths where they lie, as operators of Stator's own."""
