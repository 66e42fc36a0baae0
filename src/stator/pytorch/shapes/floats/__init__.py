"""Floats that vary: what torch's symbols, which are real numbers, cannot say of them."""
