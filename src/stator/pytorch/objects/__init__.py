"""Tensors as objects: which tensor one is, what it becomes, and its copies."""
