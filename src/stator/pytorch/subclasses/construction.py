"""`torch.Tensor(…)`, and subclasses that make their tensors so: sizes, data, or another tensor.

    class Mask(torch.Tensor):
        def __init__(self, rows, columns): ...

    Mask(2, 3)             # Tensor.__new__(Mask, 2, 3), of whatever contents

What is made has the default data type, and is made where the default type's tensors are, whatever the default device.
The types of old, `torch.IntTensor(…)`, are called in the same way and have a data type and a device of their own: it is
by those that a tensor is an instance of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.nesting import is_sequence
from stator.pytorch.tensors.classes import has_dispatch
from stator.pytorch.tensors.recording import record_function
from stator.pytorch.tensors.subclass import as_subclass
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import FALSE, TRUE, register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stator.pytorch.types import Function
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["install"]


def _new(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`Tensor.__new__(cls, …)`."""
    cls = space.known(args[0].force()) if args else None
    given = [arg.force() for arg in args[1:]]
    if not isinstance(cls, type) or has_dispatch(cls) or space.trace.classes.is_fresh(cls) or kwargs:
        raise _unknown()
    if len(given) == 1 and isinstance(given[0], TensorValue):
        made = _alias(space, given[0])
    else:
        made = _made(space, given, lambda: _default_options(space))
    return made if cls is torch.Tensor else as_subclass(space, made, cls)


def _new_of(kind: Any) -> Handler:
    """`torch.IntTensor.__new__(torch.IntTensor, …)`."""
    dtype, device = kind.dtype, _device(kind)

    def new(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = [arg.force() for arg in args[1:]]
        if kwargs or not args or space.known(args[0].force()) is not kind:
            raise _unknown(kind.__name__)
        if len(given) == 1 and isinstance(given[0], TensorValue):
            if given[0].dtype is not dtype or given[0].device.type != device.type:
                raise _unknown(kind.__name__)
            return _alias(space, given[0])
        return _made(space, given, lambda: {"dtype": Constant(dtype), "device": Constant(device)})

    return new


def _device(kind: Any) -> torch.device:
    return torch.device("cuda" if kind.is_cuda else "xpu" if kind.is_xpu else "cpu")


def _is_of_kind(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`isinstance(x, torch.IntTensor)`: of that data type, on that device and laid out so, of whatever class."""
    kind, tensor = space.known(args[0]), args[-1].force()
    if not tensor.isa(torch.Tensor):
        return FALSE
    if not isinstance(tensor, TensorValue) or has_dispatch(tensor.cls):
        return None
    layout = torch.strided if tensor.meta is not None else tensor.fake.layout
    same = (tensor.dtype, tensor.device.type, layout) == (kind.dtype, _device(kind).type, kind.layout)
    return TRUE if same else FALSE


def _alias(space: Space, tensor: TensorValue) -> TensorValue:
    return _recorded(space, torch.ops.aten.alias, [tensor], {})


def _made(space: Space, given: list[Value], options: Callable[[], dict[str, Value]]) -> TensorValue:
    """A new tensor of class Tensor, of these sizes or this data."""
    if all(arg.isa(int) and not arg.isa(bool) for arg in given):
        return _recorded(space, torch.empty, [space.new_tuple(given or [Constant(0)])], options())
    if len(given) == 1 and given[0].cls is torch.Size:
        return _recorded(space, torch.empty, given, options())
    if len(given) == 1 and is_sequence(given[0]):
        return _tensor(space.call(space.existing(torch.tensor), given, options()))
    raise _unknown()


def _recorded(space: Space, function: Function, args: list[Value], options: dict[str, Value]) -> TensorValue:
    return _tensor(record_function(space, function, *args, **options))


def _tensor(made: Value) -> TensorValue:
    made = made.force()
    assert isinstance(made, TensorValue)
    return made


def _unknown(name: str = "Tensor") -> Unsupported:
    return Unsupported(errors.UnsupportedTensorSubclass(name, f"an argument of {name}.__new__ is not known"))


def _default_options(space: Space) -> dict[str, Value]:
    """The data type and the device of the default type."""
    device = space.call(space.existing(internals.default_tensor_device), [], {})
    return {"dtype": space.call(space.existing(torch.get_default_dtype), [], {}), "device": device}


def install() -> None:
    """Register the models."""
    register(internals.TensorBase.__new__, _new)
    register(type(torch.FloatTensor).__instancecheck__, _is_of_kind)
    for kind in (*vars(torch).values(), *vars(torch.cuda).values()):
        if type(kind) is type(torch.FloatTensor):
            register(kind.__new__, _new_of(kind))
