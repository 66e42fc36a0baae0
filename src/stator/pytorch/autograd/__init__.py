"""Autograd: functions with a backward of their own, hooks, checkpoints, the engine."""
