"""Whether a graph is run as it was recorded, in the program's order, though a backend is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch.autograd.sent_again import Checkpoints
from stator.pytorch.backend_call.pieces import may_be_cut
from stator.pytorch.graph.memory import memory_guard, must_run_in_order
from stator.pytorch.state import saved_hooks

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedValue

__all__ = ["only_backward_fails", "runs_in_order"]

#: what autograd says of `y = x.exp(); y.add_(1)` in a backward pass
_OVERWRITTEN = "one of the variables needed for gradient computation has been modified by an inplace operation"


def runs_in_order(recorder: Recorder, gm: torch.fx.GraphModule, inputs: list[TracedValue]) -> bool:
    """Whether no backend can take the graph whole, nor in the pieces that it must be cut into."""
    if must_run_in_order(recorder, inputs) or not _lie_apart(recorder, inputs) or not may_be_cut(recorder, gm):
        return True
    if not (recorder.traces_backward and recorder.trace.extension(Checkpoints)):
        return False
    # Of a backward pass that is in the graph itself, a backend computes nothing again; a checkpoint around the graph
    # counts nothing of what is saved in those that the graph has.
    return bool(recorder.tracked.engine.backward_steps) or saved_hooks.are_counted(recorder.trace)


def only_backward_fails(recorder: Recorder, error: Exception) -> bool:
    """Whether a backend has failed where it may have been in a backward pass that nobody asks for.

    AOTAutograd traces that of every result together with the graph; in eager execution nobody may ever ask for it, or
    inside of a context as `loss_parallel` alone, which the graph has left then. So the graph runs as recorded.
    """
    return _OVERWRITTEN in str(error) or recorder.state.handles_otherwise


def _lie_apart(recorder: Recorder, inputs: list[TracedValue]) -> bool:
    """Whether the inputs allow a backend to gather and reorder writes; guarded."""
    guard = memory_guard(recorder, inputs)
    if guard is None:
        return True
    recorder.extra_guards.append(guard)
    return bool(guard.fn.apart)  # type: ignore[attr-defined]
