"""Reentrant checkpoints: the function runs without gradients, and again with them in the backward pass.

So what requires a gradient is decided by the arguments alone: if a tensor among them does, all results do, and those of
its parameters come with it; if none does, no result does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.utils.checkpoint as library

from stator import errors
from stator.pytorch.autograd.nodes import name_node
from stator.pytorch.state.global_state import grad_mode
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.space.space import Space

__all__ = ["run_reentrant", "warn_if_lost"]


def warn_if_lost(space: Space, args: list[Value]) -> None:
    """Warn, as the checkpoint does, that there will be no gradients, if no argument wants any."""
    if torch.is_grad_enabled():
        space.call(space.existing(library.check_backward_validity), [space.new_tuple(args)], {})


def run_reentrant(space: Space, function: Value, args: list[Value]) -> Value:
    """Call the function as the first pass of a reentrant checkpoint does, and as its backward pass differentiates."""
    args = [arg.force() for arg in args]
    if not torch.is_grad_enabled():
        return space.call(function, args, {})
    if not any(tensor.requires_grad for tensor in tensors_among(args)):
        with grad_mode(space.trace.recorder.state.change, False):
            return space.call(function, args, {})
    result = space.call(function, args, {}).force()
    parts = [part.force() for part in space.unpack(result)] if result.cls is tuple else [result]
    if not all(_is_alike(part, args) for part in parts):
        raise Unsupported(
            errors.UnsupportedTensorOperation(
                "torch.utils.checkpoint.checkpoint", "it is reentrant, and would make a result require gradients"
            )
        )
    for tensor in tensors_among(parts):
        name_node(tensor, f"{library.CheckpointFunction.__name__}Backward")
    return result


def _is_alike(part: Any, args: list[Value]) -> bool:
    """Whether a result is what the checkpoint would make of it."""
    if not isinstance(part, TensorValue):
        return type(part) is Constant
    floating = part.dtype.is_floating_point or part.dtype.is_complex
    return part.requires_grad is floating and not any(part is arg for arg in args) and part.source is None
