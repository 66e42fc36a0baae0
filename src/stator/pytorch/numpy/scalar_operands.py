"""NumPy's scalars beside tensors: torch takes them for Python's numbers, and they leave operators to tensors.

x * np.sqrt(2.0)       # Tensor.__mul__(x, 1.414…)
np.sqrt(2.0) * x       # numpy.float64.__mul__ gives NotImplemented: tensors have the higher `__array_priority__`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from stator.pytorch.numpy.array_value import SCALARS, ArrayValue
from stator.pytorch.tensors.lowering import NUMBER_TYPES, STAND_INS
from stator.pytorch.tensors.scalars import scalar
from stator.space.operators import BINARY, COMPARE

if TYPE_CHECKING:
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["install", "leaves_to_tensor"]

_OPERATORS = frozenset({entry[1] for entry in (*BINARY.values(), *COMPARE.values())})


def leaves_to_tensor(name: str, args: list[Value]) -> bool:
    """Whether a scalar's method of this name leaves the operator to its other operand."""
    return name in _OPERATORS and len(args) == 2 and args[0].cls in SCALARS and args[1].force().isa(torch.Tensor)


def _number(space: Space, array: ArrayValue) -> Value | None:
    """The number of Python's that torch takes a scalar for; it refuses arrays, and complex scalars."""
    return scalar(space, array.tensor, object) if array.cls in NUMBER_TYPES else None


def install() -> None:
    """Register what torch takes them for."""
    STAND_INS[ArrayValue] = _number
    NUMBER_TYPES.update({cls: cls.item for cls in SCALARS if issubclass(cls, np.floating | np.integer)})
