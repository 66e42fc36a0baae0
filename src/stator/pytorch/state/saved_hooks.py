"""Hooks on the tensors that are saved for the backward pass, as checkpoints set them on all that is computed in them.

They are part of the program, and see what it saves, each time it does: not what the tracer computes on fake tensors,
and nothing twice. A checkpoint counts, and ends its second pass by an exception in such a hook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch import internals
from stator.space.protocol import NONE, register

if TYPE_CHECKING:
    from stator.space.interfaces import Frame
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


#: instructions that show nothing of what hooks may have done
_SILENT = frozenset({"POP_TOP", "LOAD_CONST", "LOAD_FAST", "STORE_FAST", "COPY", "SWAP", "JUMP"})


def _pop(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The end of hooks that ordinary Python has set before the trace, if it is the last thing that the program does.

    The hooks see what the graph saves, and may do anything then: so the graph must have run before the program goes on.
    Where it only returns, they may as well end when the graph has run.
    """
    if args or kwargs or not all(map(_only_returns, space.trace.running())):
        return None
    space.trace.defer(internals.pop_saved_tensors_hooks, [])
    return NONE


def _only_returns(frame: Frame) -> bool:
    """Whether all that is left of a frame is to give a result that it has."""
    at = frame.index
    for _ in frame.instrs[at:]:  # at most: a loop does not return
        instr = frame.instrs[at]
        if instr.op == "RETURN_VALUE":
            return frame.generator is None
        if instr.op not in _SILENT:
            return False
        at = instr.arg if instr.op == "JUMP" else at + 1
    return False


def install() -> None:
    """Register the models."""
    register(internals.push_saved_tensors_hooks, _push)
    register(internals.pop_saved_tensors_hooks, _pop)
