"""What NumPy does about floating-point errors: `np.errstate`, `np.seterr`, and the warnings that the program is to see.

Torch's functions tell of no division by zero. So where NumPy would warn, raise or call, the graph gives one more
result: a number that is finite if no error can have been met (see `float_flags`). Should it be otherwise, the frame
runs again as ordinary Python, as with other assumptions about contents (see `checks`), and NumPy itself does what is to
be done. A frame that keeps meeting errors is traced again, and its functions are left to NumPy.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from stator import errors
from stator.pytorch.graph.irrevocable import irrevocable_afterwards
from stator.pytorch.reliance import Reliance, reliance
from stator.pytorch.tensors.recording import record_method
from stator.space.signals import Restart
from stator.space.value import Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.space.interfaces import Trace, Writer

__all__ = ["ASSUMPTION", "FloatErrorCheck"]

ASSUMPTION = "floating-point errors are rare"


class FloatErrorCheck:
    """The assumption of one trace that its functions of NumPy's meet no errors."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        #: numbers that are finite if there was no error, and truth values that are true then
        self.totals: list[Value] = []
        self.flags: list[Value] = []
        self.step = 0
        self.reliance: Reliance | None = None
        trace.recorder.checks.append(self)

    def begin(self) -> None:
        """The graph computes something that may meet errors."""
        trace = self.trace
        if self.reliance is not None:
            return
        self.step = trace.steps
        self.reliance = reliance(trace, ASSUMPTION)

    def confirm(self) -> None:
        """The trace is over: make sure that what its graph does can be taken back."""
        recorder: Recorder = self.trace.recorder
        obstacle = None if self.reliance is None else irrevocable_afterwards(recorder)
        if obstacle is not None:
            why = f"it may meet floating-point errors, and {obstacle}"
            raise Restart(self.step, errors.UnsupportedTensorOperation("a function of NumPy's", why))

    def expressions(self, writer: Writer) -> list[str]:
        """What must be true when the graph has run, as expressions of the generated program."""
        if self.reliance is None or not (self.totals or self.flags):
            return []
        numbers = [self._joined("add", self.totals), self._joined("logical_and", self.flags)]
        parts = [default if value is None else writer.expr(value) for value, default in zip(numbers, ("0", "True"))]
        verdict = functools.partial(_is_fine, self.reliance)
        return [f"{writer.const(verdict, 'verdict')}({', '.join(parts)})"]

    def _joined(self, method: str, values: list[Value]) -> Value | None:
        joined = None
        for value in values:
            joined = value if joined is None else record_method(self.trace.space, method, joined, value)
        return joined


def _is_fine(reliance: Reliance, total: float, fine: object = True) -> bool:
    """Whether a run of the graph can have met no error."""
    return reliance.judged(math.isfinite(total) and fine)
