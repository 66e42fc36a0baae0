"""What NumPy does about floating-point errors: `np.errstate`, `np.seterr`, and the warnings that the program is to see.

Torch's functions tell of no division by zero. So where NumPy would warn, raise or call, the graph gives one more
result: a number that is finite if no error can have been met (see `float_flags`). Should it be otherwise, the frame
runs again as ordinary Python, as with other assumptions about contents (see `checks`), and NumPy itself does what is to
be done. A frame that keeps meeting errors is traced again, and its functions are left to NumPy.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stator import errors
from stator.guards.guard import Predicate
from stator.guards.source import ConstSource
from stator.pytorch.graph.undo import only_contents
from stator.pytorch.tensors.recording import record_method
from stator.space.signals import Restart
from stator.space.value import Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.space.interfaces import Trace, Writer

__all__ = ["GIVEN_UP", "FloatErrorCheck"]

#: how often a frame runs twice before its functions are left to NumPy
_MOST_FAILURES = 3
#: in `Trace.region_state`: the frame has met errors that often
GIVEN_UP = "floating-point errors"


class Verdict:
    """Whether a run of the graph can have met no error; counts those that may have.

    Args:
        state: where the next trace of the frame finds that there were too many; None where they do not count.
    """

    __slots__ = ("failures", "state")

    def __init__(self, state: dict[object, object] | None) -> None:
        self.failures = 0
        self.state = state

    def __call__(self, total: float, fine: object = True) -> bool:
        if math.isfinite(total) and fine:
            return True
        self.failures += 1
        if self.state is not None and self.failures >= _MOST_FAILURES:
            self.state[GIVEN_UP] = True
        return False

    def is_reliable(self, _: object) -> bool:
        """Whether the graph is worth running before ordinary Python."""
        return self.failures < _MOST_FAILURES


class FloatErrorCheck:
    """The assumption of one trace that its functions of NumPy's meet no errors."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        #: numbers that are finite if there was no error, and truth values that are true then
        self.totals: list[Value] = []
        self.flags: list[Value] = []
        self.step = 0
        self.verdict: Verdict | None = None
        trace.recorder.checks.append(self)

    def begin(self) -> None:
        """The graph computes something that may meet errors."""
        trace = self.trace
        if self.verdict is not None:
            return
        self.step = trace.steps
        fullgraph = trace.compile_region.fullgraph
        counts = not (fullgraph or trace.config.error_on_recompile)
        self.verdict = Verdict(trace.region_state if counts else None)
        if counts:
            origin = ConstSource(np, "numpy")
            trace.guard(Predicate((origin,), self.verdict.is_reliable, "floating-point errors are rare"))

    def confirm(self) -> None:
        """The trace is over: make sure that what its graph does can be taken back."""
        recorder: Recorder = self.trace.recorder
        if self.verdict is not None and (
            recorder.effects.acts or not all(map(only_contents, recorder.effects.written))
        ):
            why = "it may meet floating-point errors, and what the graph does cannot be taken back"
            raise Restart(self.step, errors.UnsupportedTensorOperation("a function of NumPy's", why))

    def expressions(self, writer: Writer) -> list[str]:
        """What must be true when the graph has run, as expressions of the generated program."""
        if self.verdict is None or not (self.totals or self.flags):
            return []
        numbers = [self._joined("add", self.totals), self._joined("logical_and", self.flags)]
        parts = [default if value is None else writer.expr(value) for value, default in zip(numbers, ("0", "True"))]
        return [f"{writer.const(self.verdict, 'verdict')}({', '.join(parts)})"]

    def _joined(self, method: str, values: list[Value]) -> Value | None:
        joined = None
        for value in values:
            joined = value if joined is None else record_method(self.trace.space, method, joined, value)
        return joined
