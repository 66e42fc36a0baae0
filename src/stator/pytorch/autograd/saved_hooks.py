"""Hooks on the tensors that are saved for the backward pass, as checkpoints set them on all that is computed in them.

They are part of the program, and see what it saves, each time it does: not what the tracer computes on fake tensors,
and nothing twice. A checkpoint counts, and ends its second pass by an exception in such a hook.
"""

from __future__ import annotations

from stator.pytorch import internals

__all__ = ["active", "suspend"]


def suspend(suspended: bool) -> bool:
    """Whether no hook is called on this thread from now on; returns what held before."""
    return bool(internals.suspend_saved_tensors_hooks(suspended))


def active() -> bool:
    """Whether there is a hook that sees what is saved now."""
    return internals.top_saved_tensors_hooks(True) is not None
