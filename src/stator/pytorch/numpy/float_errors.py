"""What NumPy does about floating-point errors: `np.errstate`, `np.seterr`, and the warnings that the program is to see.

Torch's functions tell of no division by zero. So where NumPy would warn, raise or call, the graph gives one more
result: a number that is finite if no error can have been met (see `float_flags`). Should it be otherwise, the frame
runs again as ordinary Python, as with other assumptions about contents (see `checks`), and NumPy itself does what is to
be done. A frame that keeps meeting errors is traced again, and its functions are left to NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from stator import errors
from stator.guards.guard import Predicate
from stator.guards.interned import Interned
from stator.guards.source import ConstSource
from stator.pytorch.graph.undo import only_contents
from stator.pytorch.numpy import float_flags
from stator.pytorch.numpy.array_calls import numpy_dtype
from stator.pytorch.numpy.loops import ufunc_of
from stator.pytorch.tensors.lowering import Call
from stator.pytorch.tensors.recording import record
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import MODELS
from stator.space.signals import Restart
from stator.space.value import Constant, Value
from stator.space.warning_trap import is_redirected, left_to_run_time, shows

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.space.interfaces import Trace, Writer
    from stator.space.space import Space

__all__ = ["FloatErrors", "refuses_for_real"]

#: what NumPy does of its own, and calls nothing of the program's for
_PLAIN = frozenset({"ignore", "warn", "raise"})
#: how often a frame runs twice before its functions are left to NumPy
_MOST_FAILURES = 3
_magnitude: Any = torch.linalg.vector_norm
#: in `Trace.region_state`: the frame has met errors that often
_GIVEN_UP = "floating-point errors"


def refuses_for_real(space: Space) -> str | None:
    """Why a function cannot run for real while tracing, or None."""
    return None if set(_modes(space).values()) <= _PLAIN else "floating-point errors call a function"


def _modes(space: Space) -> dict[str, str]:
    """What is done about the kinds of errors, under a guard."""
    modes: dict[str, str] = dict(np.geterr())  # type: ignore[arg-type]
    space.trace.guard(Predicate((ConstSource(np, "numpy"),), _Errors(tuple(modes.values())), f"np.geterr() == {modes}"))
    return modes


class _Errors(Interned):
    """Whether NumPy does these things about errors."""

    def __init__(self, modes: tuple[str, ...]) -> None:
        self.modes = modes

    def __call__(self, numpy: Any) -> bool:
        return tuple(numpy.geterr().values()) == self.modes


class Verdict:
    """Whether a run of the graph can have met no error; counts those that may have.

    Args:
        state: where the next trace of the frame finds that there were too many; None where they do not count.
    """

    __slots__ = ("failures", "state")

    def __init__(self, state: dict[Any, Any] | None) -> None:
        self.failures = 0
        self.state = state

    def __call__(self, total: Any, fine: Any = True) -> bool:
        if math.isfinite(total) and fine:
            return True
        self.failures += 1
        if self.state is not None and self.failures >= _MOST_FAILURES:
            self.state[_GIVEN_UP] = True
        return False

    def is_reliable(self, _: Any) -> bool:
        """Whether the graph is worth running before ordinary Python."""
        return self.failures < _MOST_FAILURES


class FloatErrors:
    """The assumption of one trace that its functions of NumPy's meet no errors."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        #: numbers that are finite if there was no error, and truth values that are true then
        self.totals: list[Value] = []
        self.flags: list[Value] = []
        #: the sums among `totals` of tensors that have not been written to since, by the ids of the tensors
        self.sums: dict[int, tuple[TensorValue, Value]] = {}
        #: the sums of the magnitudes of such tensors
        self.bounds: dict[int, tuple[TensorValue, Value]] = {}
        self.mutation_count = 0
        self.step = 0
        self.verdict: Verdict | None = None

    def plan(self, host: Any, name: str, call: Call, result: Any) -> tuple[str, str | None]:
        """What tells of the errors of a call (see `float_flags`); or why it cannot be an operation of the graph."""
        modes = _modes(self.trace.space)
        if set(modes.values()) == {"ignore"}:
            return float_flags.QUIET, None
        dtypes = [numpy_dtype(value.dtype) for value in call.operands if isinstance(value, TensorValue)]
        kind = float_flags.kind_of(host, name, dtypes, result, call.kwargs)
        if kind is None or float_flags.too_big([call.args, call.kwargs], dtypes):
            kind = None
        elif kind == float_flags.QUIET:
            return kind, None
        if self._are_ignored(modes):
            return float_flags.QUIET, None
        return kind or "", self._refusal(kind, modes)

    def _are_ignored(self, modes: dict[str, str]) -> bool:
        """Whether errors are only warned about, and the program ignores the warnings; guarded."""
        space = self.trace.space
        if not set(modes.values()) <= {"ignore", "warn"} or is_redirected(space) or shows(RuntimeWarning):
            return False
        left_to_run_time(space, {RuntimeWarning}, "NumPy")
        return True

    def _refusal(self, kind: str | None, modes: dict[str, str]) -> str | None:
        trace = self.trace
        recorder: Recorder = trace.recorder
        if kind is None:
            return "nothing in its result tells whether it has met floating-point errors"
        if modes["under"] != "ignore":
            return "nothing in its result tells whether it has met an underflow"
        if _GIVEN_UP in trace.region_state:
            return "floating-point errors have been met repeatedly"
        if not trace.root.repeatable or recorder.acts or recorder.graph is not recorder.whole:
            return "it may meet floating-point errors where the frame cannot run again"
        return None

    # -- what is computed besides ---------------------------------------------------------------------------------

    def before(self, host: Any, kind: str, args: Sequence[Value], call: Call, result: Any) -> _Found | None:
        """Record what tells of the errors of a call in its operands; None where nothing can."""
        found = _Found()
        arrays = [value for value in call.operands if isinstance(value, TensorValue)]
        numbers = [value for value in arrays if _is_float(value)]
        if kind == float_flags.BOUND:
            bound = self._bound(numbers)
            if len(numbers) > 1:
                bound = self._do(torch.Tensor.pow, self._do(torch.Tensor.add, bound, 1), len(numbers))
            elif numbers:
                bound = self._do(torch.Tensor.mul, bound, bound)
            found.totals += [] if bound is None else [bound]
        elif kind in (float_flags.SUM, float_flags.MEAN):
            found.totals += [self._bound([value]) for value in numbers]
        elif kind == float_flags.PRODUCT:
            for value in numbers:
                magnitudes = self._do(torch.Tensor.clamp_min, self._do(torch.Tensor.abs, value), 1)
                found.totals.append(self._do(torch.Tensor.prod, magnitudes))
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

    def _bound(self, values: Sequence[TensorValue]) -> Any:
        """The sum of the magnitudes of all elements."""
        self._follow_writes()
        bound: Any = None
        for value in values:
            known = self.bounds.get(id(value))
            if known is None:
                call = Call(_magnitude, "call_function", _magnitude)
                known = self.bounds[id(value)] = value, record(self.trace.space, call, [value, Constant(1)], {})
            bound = known[1] if bound is None else self._do(torch.Tensor.add, bound, known[1])
            self._forget(value)
        return bound

    def _forget(self, value: TensorValue) -> None:
        """Something else tells of the elements of the tensor."""
        earlier = self.sums.pop(id(value), None)
        if earlier is not None:
            self.totals.remove(earlier[1])

    def _follow_writes(self) -> None:
        """What was computed of tensors before they were written to does not hold now."""
        if self.mutation_count != self.trace.mutation_count:
            self.sums.clear()
            self.bounds.clear()
            self.mutation_count = self.trace.mutation_count

    def _division(self, host: Any, args: Sequence[Value], found: _Found) -> bool:
        spec = ufunc_of(host)
        dividend, divisor = args[::-1] if spec is not None and spec[1] == "reflected" else args
        if type(divisor) is Constant:
            return bool(divisor.host > 0 or (divisor.host < -1))
        tensor = getattr(divisor, "tensor", None)
        if tensor is None:
            return False
        found.flags.append(self._all(self._do(torch.Tensor.ne, tensor, 0)))
        if tensor.dtype.is_signed:
            least = torch.iinfo(tensor.dtype).min
            if type(dividend) is Constant:
                return bool(dividend.host != least)
            # Of these two, one alone is harmless.
            harmless = self._do(torch.Tensor.ne, tensor, -1), self._do(torch.Tensor.ne, dividend.tensor, least)  # type: ignore[attr-defined]
            found.flags.append(self._all(self._do(torch.Tensor.logical_or, *harmless)))
        return True

    def _cast(self, value: TensorValue, to: torch.dtype, found: _Found) -> bool:
        if not float_flags.casts_badly(numpy_dtype(value.dtype), numpy_dtype(to)):
            return True
        if not _is_float(value) or (value.dtype.is_complex and not to.is_complex):
            return False
        if to.is_floating_point or to.is_complex:
            found.totals.append(self._sum(self._do(torch.Tensor.to, value, to)))
            return True
        limits = torch.iinfo(to)
        wide = self._do(torch.Tensor.to, value, torch.float64)
        lowest, highest = float(limits.min), math.nextafter(float(limits.max) + 1, 0)
        within = self._do(torch.Tensor.ge, wide, lowest), self._do(torch.Tensor.le, wide, highest)
        found.flags.append(self._all(self._do(torch.Tensor.logical_and, *within)))
        return True

    def after(self, host: Any, kind: str, call: Call, found: _Found, result: Value) -> None:
        """Record what tells of the errors of a call in its results, and check it all when the graph has run."""
        self._begin()
        self.totals += found.totals
        self.flags += found.flags
        if kind in (float_flags.DIVISION, float_flags.CAST, float_flags.SUM):
            return
        operands = [value for value in call.operands if isinstance(value, TensorValue)]
        covered = float_flags.carried(host, operands) if len(operands) == len(call.operands) else ()
        self._follow_writes()
        if kind == float_flags.MEAN and not any(_may_be_empty(value) for value in operands):
            return
        for value in _tensors(self.trace.space, result):
            if not _is_float(value):
                continue
            for operand in covered:
                # What is computed from it tells of it too, unless there are no elements for it.
                if tuple(operand.shape) == tuple(value.shape):
                    self._forget(operand)
            total = self._sum(value)
            self.totals.append(total)
            self.sums[id(value)] = value, total

    def _begin(self) -> None:
        trace = self.trace
        if self.verdict is not None:
            return
        self.step = trace.steps
        compile_region = trace.compile_region
        counts = not (compile_region.fullgraph or trace.config.error_on_recompile)
        self.verdict = Verdict(trace.region_state if counts else None)
        if counts:
            origin = ConstSource(np, "numpy")
            trace.guard(Predicate((origin,), self.verdict.is_reliable, "floating-point errors are rare"))

    def _do(self, method: Any, *args: Any) -> Any:
        values = [arg if isinstance(arg, Value) else Constant(arg) for arg in args]
        return record(self.trace.space, Call(method, "call_method", method.__name__), values, {})

    def _sum(self, value: Value) -> Any:
        """A number that is not finite if one of the elements is not, and real."""
        total = self._do(torch.Tensor.sum, value)
        return self._do(torch.Tensor.abs, total) if total.dtype.is_complex else total

    def _all(self, value: Value) -> Any:
        return self._do(torch.Tensor.all, value)

    # -- the end of the trace -------------------------------------------------------------------------------------

    def confirm(self) -> None:
        """The trace is over: make sure that what its graph does can be taken back."""
        recorder: Recorder = self.trace.recorder
        if self.verdict is not None and (recorder.acts or not all(map(only_contents, recorder.written))):
            why = "it may meet floating-point errors, and what the graph does cannot be taken back"
            raise Restart(self.step, errors.UnsupportedTensorOperation("a function of NumPy's", why))

    def expressions(self, writer: Writer) -> list[str]:
        """What must be true when the graph has run, as expressions of the generated program."""
        if self.verdict is None or not (self.totals or self.flags):
            return []
        numbers = [self._joined(torch.Tensor.add, self.totals), self._joined(torch.Tensor.logical_and, self.flags)]
        parts = [default if value is None else writer.expr(value) for value, default in zip(numbers, ("0", "True"))]
        return [f"{writer.const(self.verdict, 'verdict')}({', '.join(parts)})"]

    def _joined(self, method: Any, values: list[Value]) -> Any:
        joined: Any = None
        for value in values:
            joined = value if joined is None else self._do(method, joined, value)
        return joined


class _Found:
    """What tells of the errors of one call."""

    def __init__(self) -> None:
        self.totals: list[Value] = []
        self.flags: list[Value] = []


def _tensors(space: Space, value: Value) -> Iterator[TensorValue]:
    """The tensors of the arrays in the result of a call."""
    value = value.force()
    tensor = getattr(value, "tensor", None)
    if isinstance(tensor, TensorValue):
        yield tensor
    elif isinstance(value, (MODELS[list], MODELS[tuple])):
        for item in space.unpack(value):
            yield from _tensors(space, item)


def _may_be_empty(value: TensorValue) -> bool:
    return any(type(size) is not int or size == 0 for size in value.shape)


def _is_float(value: TensorValue) -> bool:
    return bool(value.dtype.is_floating_point or value.dtype.is_complex)
