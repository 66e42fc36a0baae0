"""Wrappers that hold views which autograd has lost track of.

    spread = DTensor.from_local(weight, mesh, [Replicate()])  # holds a view of `weight`, made without gradients
    optimizer.step()                                          # writes to `weight`

Autograd follows the wrapper, and has no question about what is in it. AOTAutograd takes the wrapper apart and saves
what it holds for the backward pass: asked where such a view comes from, autograd raises. So what the backend has made
is given a wrapper of the same memory, whose inside autograd knows nothing of.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch.tensors.classes import inner_tensors, is_traceable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedValue
    from stator.pytorch.types import Function, Host, Nested

__all__ = ["without_lost_views"]


def without_lost_views(compiled: Function, recorder: Recorder, inputs: list[TracedValue]) -> Function:
    """The compiled graph, which is given no wrapper that holds such a view, but where it writes to it."""
    written = recorder.effects.written
    wrappers = [(i, value) for i, value in enumerate(inputs) if is_traceable(value.cls) and value not in written]
    asking = [(i, attrgetter(*_histories(value.host))) for i, value in wrappers if value.host is not None]
    if not asking:
        return compiled

    def run(*args: Host) -> Nested:
        given = list(args)
        for place, ask in asking:
            try:
                ask(args[place])
            except RuntimeError:
                given[place] = _Again.apply(args[place])
        return compiled(*given)

    return run


def _histories(wrapper: Host) -> Iterator[str]:
    """Where to ask for what autograd knows of what it holds."""
    for name, inner in inner_tensors(wrapper).items():
        if is_traceable(type(inner)):
            yield from (f"{name}.{rest}" for rest in _histories(inner))
        else:
            yield f"{name}.grad_fn"


class _Again(torch.autograd.Function):
    """The same tensor, of the same memory."""

    @staticmethod
    def forward(ctx: Any, wrapper: Host) -> Host:
        return _detached(wrapper)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        return gradient


def _detached(tensor: Host) -> Host:
    if not is_traceable(type(tensor)):
        return tensor.detach() if isinstance(tensor, torch.Tensor) else tensor
    names, context = tensor.__tensor_flatten__()
    parts = {name: _detached(getattr(tensor, name)) for name in names}
    return type(tensor).__tensor_unflatten__(parts, context, tensor.size(), tensor.stride())
