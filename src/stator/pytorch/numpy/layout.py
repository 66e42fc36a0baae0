"""How an array lies in memory: `array.strides` and `array.flags`.

What is asked of an array that was there before is guarded. Of one that the graph makes, strides are those of NumPy's
own result for operands alike; a tensor's are others in a dimension of one element.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stator import errors
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.numpy.array_value import FIELDS, ArrayValue
from stator.pytorch.tensors.recording import record_method
from stator.space import facts
from stator.space.protocol import register
from stator.space.value import Constant, ObjectValue, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["install"]

_Flags: Any = type(np.empty(0).flags)


class FlagsValue(ObjectValue):
    """`array.flags`. `shown` are those of another array with the same ones, which NumPy answers for."""

    __slots__ = ("array", "shown")

    def __init__(self, array: ArrayValue, shown: Host) -> None:
        super().__init__(_Flags)
        self.array = array
        self.shown = shown

    def get_field(self, space: Space, name: str) -> Value | None:
        found = getattr(self.shown, name, None)
        if type(found) not in (bool, int):
            raise Unsupported(errors.UnsupportedAttribute("flagsobj", name))
        return Constant(found)

    def rebuilt(self, writer: Writer) -> str:
        if self.array.source is None:
            raise Unsupported(errors.NotReconstructible("the flags of an array that the graph makes"))
        return writer.assign("flags", f"{writer.expr(self.array)}.flags")


def _strides(space: Space, array: ArrayValue) -> Value:
    if array.source is not None:
        return facts.attribute(space, array, "strides")
    if array.numpy_strides is not None:
        return space.new_tuple([Constant(stride) for stride in array.numpy_strides])
    sizes = [hint_of(size) for size in array.tensor.shape]
    if array.strides is not None or any(size is None or size < 2 for size in sizes):
        raise Unsupported(errors.UnsupportedAttribute(array.cls.__name__, "strides"))
    itemsize = Constant(array.tensor.dtype.itemsize)
    strides = space.unpack(record_method(space, "stride", array.tensor))
    return space.new_tuple([space.binary("*", stride, itemsize) for stride in strides])


def _flags(space: Space, array: ArrayValue) -> Value:
    if array.source is not None:
        number = facts.answer(space, array, _number_of, "flags")
    else:
        if array.cls is not np.ndarray or array.strides is not None or array.owns_memory is None:
            raise Unsupported(errors.UnsupportedAttribute(array.cls.__name__, "flags"))
        fake = array.tensor.fake
        ordered = bool(fake.is_contiguous()), bool(fake.permute(*reversed(range(fake.dim()))).is_contiguous())
        number = _number_of(_alike(*ordered, array.owns_memory))
    shown = _shown(number)
    if shown is None:
        raise Unsupported(errors.UnsupportedAttribute(array.cls.__name__, "flags"))
    return FlagsValue(array, shown)


def _number_of(array: np.ndarray) -> int:
    return int(array.flags.num)


def _alike(in_rows: bool, in_columns: bool, owns: bool) -> np.ndarray:
    """A small array that lies in memory so."""
    array: np.ndarray
    if in_rows and in_columns:
        array = np.empty(2)
    elif in_rows or in_columns:
        array = np.empty((2, 2), order="C" if in_rows else "F")
    else:
        array = np.empty((2, 2, 2)).transpose(1, 0, 2).copy(order="K")
    return array if owns else array[...]


def _shown(number: int) -> Host | None:
    """The flags of this number; None for those of memory that is read only, or not aligned."""
    bits = (True, False)
    found = [_alike(rows, columns, owns).flags for rows in bits for columns in bits for owns in bits]
    return next((flags for flags in found if flags.num == number), None)


def _flag(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`array.flags["C_CONTIGUOUS"]`."""
    flags, name = args[0].force(), space.known(args[1].force()) if len(args) == 2 else None
    if not isinstance(flags, FlagsValue) or not isinstance(name, str):
        return None
    return Constant(space.run_for_real(_Flags.__getitem__, [flags.shown, name], {}))


def _bytes(space: Space, array: ArrayValue) -> Value:
    return space.binary("*", FIELDS["size"](space, array), Constant(array.tensor.dtype.itemsize))


def install() -> None:
    """Register the models."""
    FIELDS.update({"strides": _strides, "flags": _flags, "nbytes": _bytes})
    register(_Flags.__getitem__, _flag)
