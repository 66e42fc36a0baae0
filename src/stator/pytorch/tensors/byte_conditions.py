"""`torch.where` with a condition of bytes: what is not 0 is true, as torch's kernels take it, and warn of.

Only its kernels do; those that tell sizes and data types, and those of compilers, want a condition of bools.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.tensors.calls import function_handler, method_handler
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import register
from stator.space.value import Constant
from stator.space.warning_trap import left_to_run_time

if TYPE_CHECKING:
    from stator.space.protocol import Handler
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["install"]

_Base: Any = internals.TensorBase


def _where(place: int, otherwise: Handler) -> Handler:
    """The function, whose condition is the argument at this place."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        condition = args[place].force() if len(args) == 3 and not kwargs else None
        if not isinstance(condition, TensorValue) or condition.dtype is not torch.uint8:
            return otherwise(space, args, kwargs)
        left_to_run_time(space, (UserWarning,), "torch.where")
        truth = record_method(space, "to", condition, dtype=Constant(torch.bool))
        return otherwise(space, [*args[:place], truth, *args[place + 1 :]], kwargs)

    return handler


def install() -> None:
    """Register the models."""
    register(torch.where, _where(0, function_handler(torch.where)))
    register(_Base.where, _where(1, method_handler(_Base.where, "where")))
