"""Hooks on the tensors that are saved for the backward pass, as checkpoints set them on all that is computed in them.

They are part of the program, and see what it saves, each time it does: not what the tracer computes on fake tensors,
and nothing twice. A checkpoint counts, and ends its second pass by an exception in such a hook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch import internals
from stator.space.protocol import register

if TYPE_CHECKING:
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["active", "install", "suspend"]


def suspend(suspended: bool) -> bool:
    """Whether no hook is called on this thread from now on; returns what held before."""
    return bool(internals.suspend_saved_tensors_hooks(suspended))


def active() -> bool:
    """Whether there is a hook that sees what is saved now."""
    return internals.top_saved_tensors_hooks(True) is not None


def _push(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """Hooks for what is saved from now on: an error where the program has said that there are to be none."""
    space.trace.recorder.state.rely(("saved hooks",))
    message = internals.why_no_saved_hooks()
    if message is not None:
        raise space.error(RuntimeError, message)
    return None


def install() -> None:
    """Register the model."""
    register(internals.push_saved_tensors_hooks, _push)
