"""Subclasses of `torch.autograd.Function`: what their calls become in a graph."""
