"""`math.isfinite(n)`, `isnan` and `isinf` of a float that the graph computes: a condition that it computes too.

if not math.isfinite(loss.item()):      # item(isfinite(scalar_tensor(n)))
    raise ValueError("loss is not finite")
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.shapes.whole import number_of, recorded_with, tensor_of
from stator.pytorch.tensors.lowering import Call
from stator.space.value import Constant

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.protocol import Handler
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["models"]


def _classifier(function: Function, of_tensors: Function) -> Handler:
    """The model of a function that tells kinds of floats, given the one that does so of tensors."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        value = args[0].force() if len(args) == 1 and not kwargs else None
        if value is None or not value.symbolic:
            return None
        if value.cls is not float:
            return Constant(function(0))
        if hint_of(value.number) is not None:  # type: ignore[attr-defined]
            return None  # it is assumed
        held = tensor_of(space, value, torch.float64)
        return number_of(space, recorded_with(space, Call(of_tensors, "call_function", of_tensors), held))

    return handler


def models() -> dict[int, Handler]:
    """The models by the ids of the host callables, for calls.call_hook."""
    pairs = ((math.isfinite, torch.isfinite), (math.isnan, torch.isnan), (math.isinf, torch.isinf))
    return {id(function): _classifier(function, of_tensors) for function, of_tensors in pairs}
