"""Traced tensors: their attributes and methods, and calls of torch's functions with them."""
