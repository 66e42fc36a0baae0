"""Autograd: hooks, checkpoints, forward mode, the engine."""
