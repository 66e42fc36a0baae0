"""What torch has computed for a function of NumPy's, made arrays where it is what NumPy gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stator.pytorch.nesting import items_of
from stator.pytorch.numpy.array_calls import Answer, numpy_dtype, refusal, same_sizes, strides_of
from stator.pytorch.numpy.array_value import ArrayValue, CopiedView, lying_like
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = ["OtherType", "Result"]


class OtherType(Exception):
    """torch's result is not of NumPy's data type."""


class Result:
    """Makes arrays of the tensors in a result, where they are what NumPy gives."""

    def __init__(
        self,
        space: Space,
        name: str,
        answer: Answer,
        operands: list[Any],
        arrays: dict[int, ArrayValue],
        same: bool,
        view: tuple[Host, list[Value]] | None,
    ) -> None:
        self.space = space
        #: whether the operands are those that NumPy was asked with
        self.same = same
        #: what makes a result that is a view, where that is known: NumPy's function, and the arguments
        self.view = view
        self.name = name
        self.answer = answer
        self.operands = operands
        self.arrays = arrays

    def of(self, value: Value, real: Host) -> Value:
        """The traced result, or part of it, for that of NumPy on samples."""
        if isinstance(real, np.ndarray | np.generic):
            if not isinstance(value, TensorValue):
                raise self.differs("kind")
            return self.array(value, real)
        if type(real) is tuple or type(real) is list:
            items = items_of(self.space, value)
            if items is None or len(items) != len(real):
                raise self.differs("kind")
            parts = [self.of(item, part) for item, part in zip(items, real, strict=True)]
            return self.space.new_list(parts) if type(real) is list else self.space.new_tuple(parts)
        if value.symbolic and value.cls is type(real):
            return value
        if not value.constant or value.cls is not type(real) or value.host != real:
            raise self.differs("kind")
        return value

    def array(self, tensor: TensorValue, real: Host) -> ArrayValue:
        """One array, or scalar."""
        given = self.answer.given(real)
        if given is not None and not (self.same or given == 0):
            raise self.differs("memory")
        if given is not None:
            return self.arrays[id(self.operands[given])]
        if numpy_dtype(tensor.dtype) != real.dtype:
            raise OtherType
        if not same_sizes(tensor.shape, real.shape):
            raise self.differs("shape")
        bases = self.bases(real)
        shared = {base.tensor.root for base in bases}
        if shared and (not (self.same and tensor.root in shared) or any(base.strides for base in bases)):
            return self.copied_view(tensor, bases, real)
        if (not shared and tensor.root is not tensor) or not self.lies_like(tensor, real):
            if shared:
                raise self.differs("layout in memory")
            tensor = self.laid_out(tensor, real)
        return lying_like(ArrayValue(tensor, type(real)), real, [*self.arrays.values()])

    def bases(self, real: Host) -> list[ArrayValue]:
        """The arrays in whose memory a part of NumPy's result lies."""
        if type(real) is not np.ndarray:
            return []
        return [self.arrays[id(self.operands[i])] for i in self.answer.shares(real)]

    def copied_view(self, tensor: TensorValue, bases: list[ArrayValue], real: Host) -> ArrayValue:
        """A view that torch has made a copy for."""
        if self.view is None or self.answer.result is not real:
            raise self.differs("memory")
        return CopiedView(tensor, bases, strides_of(real), *self.view)

    @staticmethod
    def lies_like(tensor: TensorValue, real: Host) -> bool:
        """Whether the elements of the traced tensor lie in memory like those of an array."""
        strides = tensor.meta.stride if tensor.meta is not None else tuple(tensor.fake.stride())
        return same_sizes(strides, strides_of(real), real.shape)

    def laid_out(self, tensor: TensorValue, real: Host) -> TensorValue:
        """A copy of a tensor whose elements lie in memory like those of an array, in whatever order."""
        outer_first = tuple(sorted(range(real.ndim), key=lambda dim: -real.strides[dim]))
        if not real.transpose(outer_first).flags.c_contiguous:
            raise self.differs("layout in memory")
        if real.flags.c_contiguous:
            return record_method(self.space, "clone", tensor, memory_format=torch.contiguous_format)
        turned = record_method(self.space, "permute", tensor, outer_first)
        copy = record_method(self.space, "clone", turned, memory_format=torch.contiguous_format)
        return record_method(self.space, "permute", copy, tuple(map(outer_first.index, range(real.ndim))))

    def differs(self, what: str) -> Unsupported:
        """torch's result is not NumPy's."""
        return refusal(self.name, f"the {what} of torch's result differs")
