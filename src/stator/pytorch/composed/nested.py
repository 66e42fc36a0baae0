"""Nested tensors that the program makes of a list of tensors: what is done to them is done to each."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.guards.source import CallSource
from stator.pytorch import internals
from stator.pytorch.composed.composed import Composed, Model, bind, dim
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.nesting import is_sequence
from stator.pytorch.tensors.calls import method_handler
from stator.pytorch.tensors.recording import record_function, record_method
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.protocol import register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.space import Space

__all__ = ["composition", "install"]

_Base: Any = internals.TensorBase


class Nested(Composed):
    """`parts` are its rows."""

    __slots__ = ()
    KIND = "a nested tensor"

    def facts(self) -> dict[str, object]:
        row = self.parts[0]
        own = {"device": row.device, "dtype": row.dtype, "is_nested": True, "ndim": len(row.shape) + 1}
        return super().facts() | own

    def unpack(self, space: Space) -> list[Value]:
        return [record_method(space, "detach", row) for row in self.parts]


class Existing:
    """One that exists before the trace, as an operand: its rows are inputs of the graph. Its guard knows the sizes."""

    def __init__(self, tensor: TensorValue) -> None:
        self.tensor = tensor

    def perform(self, space: Space, function: Function, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """What an operation on it gives."""
        tensor = self.tensor
        assert tensor.source is not None
        readers = [_reader(index) for index in range(len(tensor.host.unbind()))]
        rows = [space.wrap(read(tensor.host), CallSource(read, tensor.source, "row")).force() for read in readers]
        nested = Nested(space, *rows)
        return nested.perform(space, function, [nested if arg.force() is tensor else arg for arg in args], kwargs)


@functools.cache
def _reader(index: int) -> Function:
    """What reads a row, which is no view of the nested tensor to autograd."""
    return lambda tensor: tensor.unbind()[index].data


def composition(tensor: TensorValue) -> Existing | None:
    """What says what operations on an existing nested tensor are."""
    host = tensor.host
    existing = tensor.source is not None and host is not None and tensor not in tensor.recorder.tracked.rebound
    return Existing(tensor) if existing and _is_plain(host) else None


def _is_plain(host: Any) -> bool:
    return host.is_nested and host.layout is torch.strided and not host.requires_grad and host.is_contiguous()


def _rebuilt(*rows: torch.Tensor) -> torch.Tensor:
    return internals.nested_of_list([*rows])


Nested.MAKE = staticmethod(_rebuilt)


def _of_list(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch._C._nested.nested_tensor(list, dtype=…, device=…, requires_grad=…, pin_memory=…)`: copies of the rows."""
    given = bind(("data", "dtype", "device", "requires_grad", "pin_memory"), args, kwargs)
    rows: list[Any] = [row.force() for row in space.unpack(given["data"])] if is_sequence(given["data"]) else []
    others = [given[name] for name in ("dtype", "device", "requires_grad", "pin_memory")]
    if (
        not rows
        or not _are_alike(rows)
        or any(not value.constant or value.host not in (None, False) for value in others)
    ):
        why = "it is made of other things than tensors of one kind"
        raise Unsupported(errors.UnsupportedTensorOperation(describe_callable(internals.nested_tensor), why))
    copies = [record_method(space, "clone", record_method(space, "detach", row)) for row in rows]
    return Nested(space, *[record_method(space, "contiguous", row) for row in copies])


def _are_alike(rows: list[Any]) -> bool:
    if len(tensors_among(rows)) < len(rows) or any(row.composed or row.meta is None for row in rows):
        return False
    return len({(row.dtype, row.device, len(row.shape)) for row in rows}) == 1 and len(rows[0].shape) > 0


def _to_padded(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.nested.to_padded_tensor(nested, padding, output_size=None)`."""
    given = bind(("self", "padding", "output_size", "out"), args, kwargs)
    source: Any = given["self"]
    if any(not given[name].constant or given[name].host is not None for name in ("output_size", "out")):
        raise source.refuse("to_padded_tensor")
    return record_function(space, padded, space.new_list([*source.parts]), given["padding"])


def padded(rows: list[torch.Tensor], padding: float) -> torch.Tensor:
    """Tensors of different sizes in one that is as large as each of them in each dimension."""
    dims = range(rows[0].dim())
    sizes = [functools.reduce(torch.sym_max, [row.shape[dim] for row in rows]) for dim in dims]
    filled = []
    for row in rows:
        missing = [(0, sizes[dim] - row.shape[dim]) for dim in reversed(dims)]
        filled.append(torch.nn.functional.pad(row, [*sum(missing, ())], value=padding))
    return torch.stack(filled)


def _of_each(name: str) -> Model:
    """An operation on each row; with a number, or with the rows of another tensor."""

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        nested: Any = next(arg for arg in args if isinstance(arg, Nested))
        if kwargs or (len(args) > 1 and name not in _ARITHMETIC) or not all(_fits(nested, arg) for arg in args):
            raise nested.refuse(name)
        function = getattr(_Base, name)
        rows = [
            method_handler(function, name)(
                space, [arg.parts[i] if isinstance(arg, Nested) else arg for arg in args], {}
            )
            for i in range(len(nested.parts))
        ]
        return Nested(space, *[row.force() for row in rows])  # type: ignore[union-attr]

    return model


def _fits(nested: Nested, other: Value) -> bool:
    """Whether an operand goes with the tensor, so that torch takes both."""
    if isinstance(other, Nested):
        return len(other.parts) == len(nested.parts) and all(
            one.shape == two.shape and one.dtype is two.dtype
            for one, two in zip(nested.parts, other.parts, strict=True)
        )
    return other.constant and other.cls in (int, float)


def _unbind(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`nested.unbind()`: the rows, which share its memory."""
    nested: Any = args[0]
    if kwargs or any(space.known(arg) != 0 for arg in args[1:]):
        raise nested.refuse("Tensor.unbind")
    return space.new_tuple(nested.unpack(space))


def _size(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`nested.size(0)`."""
    nested: Any = args[0]
    if len(args) != 2 or kwargs or space.known(args[1]) != 0:
        raise nested.refuse("Tensor.size")
    return Constant(len(nested.parts))


#: what torch has kernels of for nested tensors
_ALONE = ("abs", "neg", "relu", "sin", "cos", "tanh", "sgn", "logical_not", "clone", "contiguous", "detach")
_ARITHMETIC = ("add", "mul", "sub", "div", "__add__", "__radd__", "__mul__", "__rmul__", "__sub__", "__truediv__")
Nested.models = {
    internals.nested_to_padded: _to_padded,
    _Base.to_padded_tensor: _to_padded,
    _Base.unbind: _unbind,
    torch.unbind: _unbind,
    _Base.size: _size,
    _Base.dim: dim,
    **{getattr(_Base, name): _of_each(name) for name in (*_ALONE, *_ARITHMETIC)},
    **{getattr(torch, name): _of_each(name) for name in (*_ALONE, *_ARITHMETIC) if hasattr(torch, name)},
    torch.nn.functional.relu: _of_each("relu"),
}


def install() -> None:
    """Register the model."""
    register(internals.nested_tensor, _of_list)
