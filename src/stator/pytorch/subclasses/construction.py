"""`torch.Tensor(…)`, and subclasses that make their tensors so: sizes, data, or another tensor.

    class Mask(torch.Tensor):
        def __init__(self, rows, columns): ...

    Mask(2, 3)             # Tensor.__new__(Mask, 2, 3), of whatever contents

What is made has the default data type, and is made where the default type's tensors are, whatever the default device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.nesting import is_sequence
from stator.pytorch.tensors.classes import has_dispatch
from stator.pytorch.tensors.lowering import Call
from stator.pytorch.tensors.recording import record
from stator.pytorch.tensors.subclass import as_subclass
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.space import Space

__all__ = ["install"]


def _new(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`Tensor.__new__(cls, …)`."""
    cls = space.known(args[0].force()) if args else None
    given = [arg.force() for arg in args[1:]]
    if not isinstance(cls, type) or has_dispatch(cls) or space.trace.classes.is_fresh(cls) or kwargs:
        raise Unsupported(errors.UnsupportedTensorSubclass("Tensor", "an argument of Tensor.__new__ is not known"))
    made = _made(space, given).force()
    assert isinstance(made, TensorValue)
    return made if cls is torch.Tensor else as_subclass(space, made, cls)


def _made(space: Space, given: list[Value]) -> Value:
    """A new tensor of class Tensor."""
    if len(given) == 1 and isinstance(given[0], TensorValue):
        return _recorded(space, torch.ops.aten.alias, given, {})
    if all(arg.isa(int) for arg in given):
        return _recorded(space, torch.empty, [space.new_tuple(given or [Constant(0)])], _options(space))
    if len(given) == 1 and given[0].cls is torch.Size:
        return _recorded(space, torch.empty, given, _options(space))
    if len(given) == 1 and is_sequence(given[0]):
        return space.call(space.existing(torch.tensor), given, _options(space))
    raise Unsupported(errors.UnsupportedTensorSubclass("Tensor", "an argument of Tensor.__new__ is not known"))


def _recorded(space: Space, function: Function, args: list[Value], options: dict[str, Value]) -> Value:
    return record(space, Call(function, "call_function", function), args, options)


def _options(space: Space) -> dict[str, Value]:
    """The data type and the device of the default type."""
    device = space.call(space.existing(internals.default_tensor_device), [], {})
    return {"dtype": space.call(space.existing(torch.get_default_dtype), [], {}), "device": device}


def install() -> None:
    """Register the model."""
    register(internals.TensorBase.__new__, _new)
