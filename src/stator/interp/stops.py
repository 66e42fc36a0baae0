"""Before which instruction a trace stops: where a break has been asked for, or where it has become too long."""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING

from stator import errors
from stator.bytecode import is_suspendable
from stator.bytecode.continuation import enterable
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.bytecode.decode import Instr
    from stator.errors import Break
    from stator.space.interfaces import Frame, Trace

#: items that one trace may take out of iterators
_MOST_ITEMS = 1_000_000
#: instructions before which a break cannot be placed: a frame's prologue, and the finishing of a function (3.13)
_PROLOGUE = frozenset({"MAKE_CELL", "COPY_FREE_VARS", "RETURN_GENERATOR", "SET_FUNCTION_ATTRIBUTE"})


class Stops:
    """The steps before which a trace stops.

    Args:
        at: the step before which it must end, 0 for none.
        reason: the break that it ends with there.
    """

    def __init__(self, trace: Trace, at: int, reason: Break | None) -> None:
        self._trace = trace
        self._at = at
        self._reason = reason
        self._limit = trace.config.trace_step_limit
        self._items = 0
        self._settles = False
        self._lines: set[tuple[str, int]] | None = None
        #: the step at which the interpreter asks; 0: before the next instruction
        self.next = at or self._limit
        #: where the trace was too long: the code of the inlined calls that will not be traced by themselves either
        self.overlong: tuple[CodeType, ...] = ()

    def soon(self) -> None:
        """Something is to be looked at before the next instruction."""
        self.next, self._settles = 0, True

    def note_lines(self, lines: set[tuple[str, int]]) -> None:
        """From now on, file and line of each instruction are added to these."""
        self.next, self._lines = 0, lines

    def reached(self, instr: Instr) -> None:
        """The step `next` has come: do what is to be done before the instruction, or end the trace."""
        trace = self._trace
        if not self.next:
            planned = self._at if self._at >= trace.steps else self._limit
            if self._lines is None:
                self.next = planned
            else:
                self._lines.add((trace.frame.code.co_filename, instr.line or 0))
            if self._settles:
                self._settles = False
                trace.finalizers.settle(can_break_before(trace.frame, instr))
            if trace.steps < planned:
                return
        if trace.steps >= self._limit:
            raise self._too_long(self._limit)
        if trace.steps < self._at:
            return
        forced = isinstance(self._reason, errors.ForcedBreak)
        if instr.op in _PROLOGUE or (forced and not enterable(trace.frame.code, instr.index)):
            self._at += 1
            return
        if trace.steps == self._at:
            self.next = 0 if self._lines is not None else self._limit
            raise Unsupported(self._reason)

    def count_item(self, cost: int = 1) -> None:
        """An item is taken out of an iterator, or so: a long loop may run inside of one instruction."""
        self._items += cost
        if self._items > _MOST_ITEMS:
            raise self._too_long(_MOST_ITEMS)

    def _too_long(self, limit: int) -> Unsupported:
        """The inlined calls that took most of the trace would be too long by themselves too."""
        steps = self._trace.steps
        inlined = [frame for frame in self._trace.running() if frame.parent is not None]
        long = [frame.code for frame in inlined if (steps - frame.begun) * 2 > steps and not is_suspendable(frame.code)]
        self.overlong = tuple(dict.fromkeys(long))
        return Unsupported(errors.TraceTooLong(limit))


def can_break_before(frame: Frame, instr: Instr) -> bool:
    """Whether a frame can be resumed at the instruction."""
    return instr.op not in _PROLOGUE and enterable(frame.code, instr.index)
