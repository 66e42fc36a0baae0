"""The traced array: a tensor in the same memory, of which NumPy's attributes are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stator import errors
from stator.guards.source import CallSource
from stator.models.classes.instance import InstanceValue
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.numpy.array_calls import numpy_dtype, tensor_of
from stator.pytorch.tensors import attributes
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Constant, ObjectValue, Unsupported, Value

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.pytorch.types import Host
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["FIELDS", "SCALARS", "ArrayValue", "CopiedView", "lying_like", "stored"]

SCALARS: tuple[type, ...] = tuple(np.dtype(code).type for code in "?bBhHiIlLqQefdFD")


class ArrayValue(ObjectValue):
    """An array, or a scalar of NumPy's: `tensor` lies in the same memory."""

    __slots__ = ("numpy_strides", "owns_memory", "tensor")

    def __init__(self, tensor: TensorValue, cls: type = np.ndarray) -> None:
        self.cls = cls
        self.source: Source | None = None
        self.host: Host = None
        self.tensor = tensor
        #: of one that the graph makes: the strides of NumPy's result, and whether that has memory of its own
        self.numpy_strides: tuple[int, ...] | None = None
        self.owns_memory: bool | None = None

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        """An existing array: as a tensor, where torch has one like it."""
        own = space.guard_type(host, source)
        tensor = _existing(space, host, source)
        if tensor is None:
            return InstanceValue.from_host(space, host, source)
        self = cls(tensor, own)
        self.host, self.source = host, source
        return self

    def get_field(self, space: Space, name: str) -> Value | None:
        reader = FIELDS.get(name)
        if reader is None:
            raise Unsupported(errors.UnsupportedAttribute(self.cls.__name__, name))
        return reader(space, self)

    @property
    def strides(self) -> tuple[int, ...] | None:
        """The strides, where they are not those of the tensor."""
        return None

    def memory(self) -> list[TensorValue]:
        """The tensors in whose memory it lies."""
        return [self.tensor.root]

    def refuse_written(self, name: str) -> None:
        """An operation has been given the array, and may have written the tensor."""

    def unpack(self, space: Space) -> list[Value]:
        count = len(self.tensor.shape) and hint_of(self.tensor.shape[0])
        space.int_(space.len(self))  # is assumed not to change
        getitem = np.ndarray.__getitem__
        return [space.call_builtin(getitem, [self, Constant(i)], {}) for i in range(count)]

    def describe(self) -> str:
        return f"an array of shape {tuple(self.tensor.shape)}"

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        text = f"{writer.const(torch.Tensor.numpy)}({writer.expr(self.tensor)})"
        # A view, as libraries ask for `array.base.size`: the base of what `numpy()` gives is the tensor.
        return writer.assign("array", f"{text}.view()" if self.cls is np.ndarray else f"{text}[()]")


class CopiedView(ArrayValue):
    """A view of other arrays that no tensor can be, as strides of tensors are positive: `flipped = a[::-1]`.

    `tensor` is a copy of what the view shows. It may be read while nothing has been written to the arrays in whose
    memory the view lies, and may not be written. The view itself is made by generated code: `host` makes it of `args`.
    """

    __slots__ = ("args", "copy", "made_by", "real_strides", "roots", "writes")

    def __init__(
        self, tensor: TensorValue, bases: list[ArrayValue], strides: tuple[int, ...], host: Host, args: list[Value]
    ) -> None:
        #: the tensors in whose memory it lies
        self.roots = [root for base in bases for root in base.memory()]
        self.writes = _writes(tensor, self.roots)
        super().__init__(tensor)
        self.real_strides = strides
        self.made_by, self.args = host, args

    @property
    def tensor(self) -> TensorValue:
        if _writes(self.copy, self.roots) != self.writes:
            raise Unsupported(
                errors.UnsupportedTensorOperation(
                    "numpy.ndarray", "it is a view, with negative strides, of what changes"
                )
            )
        return self.copy

    @tensor.setter
    def tensor(self, tensor: TensorValue) -> None:
        self.copy = tensor

    @property
    def strides(self) -> tuple[int, ...]:
        return self.real_strides

    def memory(self) -> list[TensorValue]:
        return self.roots

    def refuse_written(self, name: str) -> None:
        if _writes(self.copy, [self.copy.root]):
            raise Unsupported(errors.UnsupportedTensorOperation(f"numpy.{name}", "it writes a view with such strides"))

    def reconstruct(self, writer: Writer) -> str:
        args = ", ".join(map(writer.expr, self.args))
        return writer.assign("array", f"{writer.const(self.made_by)}({args})")


def _writes(tensor: TensorValue, roots: list[TensorValue]) -> int:
    """How often the graph has written these tensors so far."""
    noted = tensor.recorder.effects.writes.values()
    return sum(counts.get(root, 0) for counts in noted for root in roots)


def lying_like(made: ArrayValue, real: Host, operands: list[ArrayValue]) -> ArrayValue:
    """The array, of which NumPy's result for operands like these is known."""
    if type(real) is np.ndarray:
        made.owns_memory = bool(real.flags.owndata)
        if not any(array.tensor.meta is None or array.tensor.meta.symbolic for array in (made, *operands)):
            made.numpy_strides = real.strides
    return made


def _existing(space: Space, host: Host, source: Source) -> TensorValue | None:
    """The tensor in the memory of an existing array."""
    if source.is_constant or type(host) not in (np.ndarray, *SCALARS):
        return None
    recorder = space.trace.recorder
    try:
        with recorder.state.at_entry():
            tensor = tensor_of(host)
    except (TypeError, ValueError):
        return None
    value = TensorValue(recorder, torch.Tensor, None)
    value.source = CallSource(tensor_of, source, "torch.from_numpy")
    value.host = tensor
    recorder.tracked.adopt(value)
    return value


# -- attributes -------------------------------------------------------------------------------------------------------


def _shape(space: Space, array: ArrayValue) -> Value:
    return space.new_tuple(space.unpack(attributes.shape(space, array.tensor)))


def _total(space: Space, array: ArrayValue) -> Value:
    total: Value = Constant(1)
    for size in space.unpack(attributes.shape(space, array.tensor)):
        total = space.binary("*", total, size)
    return total


def _dtype(space: Space, array: ArrayValue) -> Value:
    return Constant(numpy_dtype(array.tensor.dtype))


#: what reads the attributes of an array; those that are views of it are added by what records them (`arrays`)
FIELDS: dict[str, Callable[[Space, ArrayValue], Value]] = {
    "shape": _shape,
    "ndim": lambda space, array: Constant(len(array.tensor.shape)),
    "size": _total,
    "dtype": _dtype,
    "itemsize": lambda space, array: Constant(numpy_dtype(array.tensor.dtype).itemsize),
}


#: the data types that have a number for each integer of 64 bits
_OF_ANY_INTEGER = (torch.int64, torch.float32, torch.float64)


def stored(space: Space, name: str, array: Value, value: Value) -> Value:
    """What is written to an array; an integer that is known when the graph runs is a scalar of NumPy's by then."""
    if not value.symbolic or not isinstance(array, ArrayValue):
        return value
    # NumPy refuses a number that the array's type may not have, and backends hand over floats in single precision.
    if value.cls is not int or array.tensor.dtype not in _OF_ANY_INTEGER:
        raise Unsupported(errors.UnknownArgument(f"numpy.{name}", value.describe()))
    made: Any = space.call(space.existing(torch.scalar_tensor), [value], {"dtype": Constant(torch.int64)}).force()
    return ArrayValue(made, np.int64)
