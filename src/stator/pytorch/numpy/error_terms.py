"""What is computed besides a function of NumPy's, so that the check of its errors can tell (see `float_flags`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from stator.pytorch.nesting import values_in
from stator.pytorch.numpy import float_flags
from stator.pytorch.numpy.array_calls import numpy_dtype
from stator.pytorch.numpy.error_check import FloatErrorCheck
from stator.pytorch.numpy.loops import ufunc_of
from stator.pytorch.tensors.lowering import Call
from stator.pytorch.tensors.recording import record, record_method
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host, Nested
    from stator.space.interfaces import Trace

__all__ = ["ErrorTerms"]

_magnitude: Function = torch.linalg.vector_norm


class Found:
    """What tells of the errors of one call."""

    def __init__(self) -> None:
        self.totals: list[Value] = []
        self.flags: list[Value] = []


class ErrorTerms:
    """The terms of one trace's check."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.check = trace.extension(FloatErrorCheck)
        #: the sums among the check's totals of tensors that have not been written to since, by the ids of the tensors
        self.sums: dict[int, tuple[TensorValue, Value]] = {}
        #: the sums of the magnitudes of such tensors
        self.bounds: dict[int, tuple[TensorValue, Value]] = {}
        self.mutation_count = 0

    def before(self, host: Host, kind: str, args: Sequence[Value], call: Call, result: Nested) -> Found | None:
        """Record what tells of the errors of a call in its operands; None where nothing can."""
        found = Found()
        arrays = tensors_among(call.operands)
        numbers = [value for value in arrays if _is_float(value)]
        if kind == float_flags.BOUND:
            bound = self._bound(numbers)
            if len(numbers) > 1:
                bound = self._do("pow", self._do("add", bound, 1), len(numbers))
            elif numbers:
                bound = self._do("mul", bound, bound)
            found.totals += [] if bound is None else [bound]
        elif kind in (float_flags.SUM, float_flags.MEAN):
            found.totals += [bound for value in numbers if (bound := self._bound([value])) is not None]
        elif kind == float_flags.PRODUCT:
            for value in numbers:
                magnitudes = self._do("clamp_min", self._do("abs", value), 1)
                found.totals.append(self._do("prod", magnitudes))
        elif kind == float_flags.DIVISION:
            return found if self._division(host, args, found) else None
        elif kind == float_flags.CAST:
            writes = result is None
            targets = [arrays[0].dtype] if writes else [torch.from_numpy(np.empty(0, result.dtype)).dtype]
            for value in arrays:
                for target in targets:
                    if not self._cast(value, target, found):
                        return None
        return found

    def _bound(self, values: Sequence[TensorValue]) -> Value | None:
        """The sum of the magnitudes of all elements."""
        self._follow_writes()
        bound: Value | None = None
        for value in values:
            known = self.bounds.get(id(value))
            if known is None:
                call = Call(_magnitude, "call_function", _magnitude)
                known = self.bounds[id(value)] = value, record(self.trace.space, call, [value, Constant(1)], {})
            bound = known[1] if bound is None else self._do("add", bound, known[1])
            self._forget(value)
        return bound

    def _forget(self, value: TensorValue) -> None:
        """Something else tells of the elements of the tensor."""
        earlier = self.sums.pop(id(value), None)
        if earlier is not None:
            self.check.totals.remove(earlier[1])

    def _follow_writes(self) -> None:
        """What was computed of tensors before they were written to does not hold now."""
        if self.mutation_count != self.trace.mutation_count:
            self.sums.clear()
            self.bounds.clear()
            self.mutation_count = self.trace.mutation_count

    def _division(self, host: Host, args: Sequence[Value], found: Found) -> bool:
        spec = ufunc_of(host)
        dividend, divisor = args[::-1] if spec is not None and spec[1] == "reflected" else args
        if divisor.constant:
            return bool(divisor.host > 0 or (divisor.host < -1))
        tensor = getattr(divisor, "tensor", None)
        if tensor is None:
            return False
        found.flags.append(self._all(self._do("ne", tensor, 0)))
        if tensor.dtype.is_signed:
            least = torch.iinfo(tensor.dtype).min
            if dividend.constant:
                return bool(dividend.host != least)
            # Of these two, one alone is harmless.
            harmless = self._do("ne", tensor, -1), self._do("ne", dividend.tensor, least)  # type: ignore[attr-defined]
            found.flags.append(self._all(self._do("logical_or", *harmless)))
        return True

    def _cast(self, value: TensorValue, to: torch.dtype, found: Found) -> bool:
        if not float_flags.casts_badly(numpy_dtype(value.dtype), numpy_dtype(to)):
            return True
        if not _is_float(value) or (value.dtype.is_complex and not to.is_complex):
            return False
        if to.is_floating_point or to.is_complex:
            found.totals.append(self._sum(self._do("to", value, to)))
            return True
        limits = torch.iinfo(to)
        wide = self._do("to", value, torch.float64)
        lowest, highest = float(limits.min), math.nextafter(float(limits.max) + 1, 0)
        within = self._do("ge", wide, lowest), self._do("le", wide, highest)
        found.flags.append(self._all(self._do("logical_and", *within)))
        return True

    def after(self, host: Host, kind: str, call: Call, found: Found, result: Value) -> None:
        """Record what tells of the errors of a call in its results, and check it all when the graph has run."""
        self.check.begin()
        self.check.totals += found.totals
        self.check.flags += found.flags
        if kind in (float_flags.DIVISION, float_flags.CAST, float_flags.SUM):
            return
        operands = tensors_among(call.operands)
        covered = float_flags.carried(host, operands) if len(operands) == len(call.operands) else ()
        self._follow_writes()
        if kind == float_flags.MEAN and not any(_may_be_empty(value) for value in operands):
            return
        for array in values_in(self.trace.space, result.force()):
            value = getattr(array, "tensor", None)
            if value is None or not _is_float(value):
                continue
            for operand in covered:
                # What is computed from it tells of it too, unless there are no elements for it.
                if tuple(operand.shape) == tuple(value.shape):
                    self._forget(operand)
            total = self._sum(value)
            self.check.totals.append(total)
            self.sums[id(value)] = value, total

    def _do(self, method: str, *args: object) -> TensorValue:
        return record_method(self.trace.space, method, *args)

    def _sum(self, value: Value) -> TensorValue:
        """A number that is not finite if one of the elements is not, and real."""
        total = self._do("sum", value)
        return self._do("abs", total) if total.dtype.is_complex else total

    def _all(self, value: Value) -> TensorValue:
        return self._do("all", value)


def _may_be_empty(value: TensorValue) -> bool:
    return any(type(size) is not int or size == 0 for size in value.shape)


def _is_float(value: TensorValue) -> bool:
    return bool(value.dtype.is_floating_point or value.dtype.is_complex)
