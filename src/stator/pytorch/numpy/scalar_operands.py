"""NumPy's scalars and arrays beside tensors.

torch takes scalars for Python's numbers, and they leave operators to tensors; arrays it takes for tensors in an index.

x * np.sqrt(2.0)       # Tensor.__mul__(x, 1.414…)
np.sqrt(2.0) * x       # numpy.float64.__mul__ gives NotImplemented: tensors have the higher `__array_priority__`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from stator.pytorch.numpy.array_value import SCALARS, ArrayValue
from stator.pytorch.tensors.lowering import INDICES, NUMBER_TYPES, STAND_INS
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.scalars import scalar
from stator.space.operators import BINARY, COMPARE

if TYPE_CHECKING:
    from stator.pytorch.tensors.tensor import TensorValue
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


def _index(space: Space, array: ArrayValue) -> TensorValue | None:
    """The tensor that torch takes an array of integers or a mask in an index for."""
    tensor = array.tensor
    if array.cls is not np.ndarray or not len(tensor.shape):
        return None
    if tensor.dtype in (torch.int64, torch.bool):
        return tensor
    return record_method(space, "to", tensor, torch.int64) if tensor.dtype in _CONVERTED else None


_CONVERTED = (torch.int32, torch.int16, torch.int8)


def install() -> None:
    """Register what torch takes them for."""
    STAND_INS[ArrayValue] = _number
    INDICES[ArrayValue] = _index
    NUMBER_TYPES.update({cls: cls.item for cls in SCALARS if issubclass(cls, np.floating | np.integer)})
