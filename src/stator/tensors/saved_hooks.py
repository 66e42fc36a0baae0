"""Hooks on the tensors that are saved for the backward pass, as checkpoints set them on all that is computed in them.

They are part of the program, and see what it saves, each time it does: not what the tracer computes on fake tensors,
and nothing twice. A checkpoint counts, and ends its second pass by an exception in such a hook.
"""

from __future__ import annotations

import torch

__all__ = ["active", "suspend"]

_autograd = torch._C._autograd


def suspend(suspended: bool) -> bool:
    """Whether no hook is called on this thread from now on; returns what held before."""
    return _autograd._saved_tensors_hooks_set_tracing(suspended)


def active() -> bool:
    """Whether there is a hook that sees what is saved now."""
    return _autograd._top_saved_tensors_default_hooks(True) is not None
