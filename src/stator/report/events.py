"""What happens while frames are compiled, told to all who listen: the counters, the logs, who explains a run.

Nothing is told of a call that an entry fits: listening costs such a call nothing.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from traceback import FrameSummary
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from stator.errors.message import place
from stator.guards.naming import Names, names_of
from stator.guards.source import CallInputs
from stator.report.stats import STATS, BreakRecord, RecompileRecord

if TYPE_CHECKING:
    from stator._core import Entry
    from stator.errors import Break
    from stator.space.host_types import Host
    from stator.space.interfaces import Trace

__all__ = ["EVENTS", "Broke", "Called", "Compiled", "Listener", "listening"]


@dataclasses.dataclass(frozen=True)
class Broke:
    """A graph break, or a frame that is given up.

    Attributes:
        brk: what happened.
        where: "file.py:line" of the instruction, or of a frame given up.
        stack: the program's frames, outermost first; its definition where the frame was refused before it was traced.
        cause: the break for which a frame is given up, if it is one.
        within: the definition of a caller that runs as ordinary Python since it was compiled too often, so that this
            frame is compiled by itself.
    """

    brk: Break
    where: str
    stack: tuple[FrameSummary, ...] = ()
    cause: Break | None = None
    within: FrameSummary | None = None

    @property
    def record(self) -> BreakRecord:
        """As `stats()` counts it."""
        inside = place(self.stack[-1]) if self.stack else self.where
        return BreakRecord(self.brk.code, self.brk.reason, self.where, inside="" if inside == self.where else inside)


@dataclasses.dataclass(frozen=True)
class Called:
    """A backend has been called.

    Attributes:
        backend: its name.
        gm: the graph that it was given, as `torch.fx.GraphModule`.
        seconds: how long it took.
    """

    backend: str
    gm: Host
    seconds: float


@dataclasses.dataclass
class Compiled:
    """A frame has been compiled, or not.

    Attributes:
        code: of the frame.
        function: the function that the frame executes.
        args: the values of the frame's arguments when it began.
        lines: "file.py" and line of all that was executed symbolically; None where no listener wants them.
        entry: its guards are `entry.program`, its residual program and graph `entry.owner`; None where none was made.
        seconds: spent on it, its backend included.
        backend_seconds: spent in the backend.
    """

    code: CodeType
    function: FunctionType
    args: Sequence[Host]
    lines: set[tuple[str, int]] | None = None
    entry: Entry | None = None
    seconds: float = 0.0
    backend_seconds: float = 0.0

    @cached_property
    def names(self) -> Names:
        """What the program calls the sources of the call."""
        return names_of(self.code, CallInputs(self.function, tuple(self.args)))


class Listener:
    """Is told what happens, in the thread in which it does; a listener overrides what it wants to hear."""

    #: whether it wants `Compiled.lines`, which take a twentieth of the time of a trace to note
    wants_lines = False

    def begun(self, code: CodeType) -> None:
        """A frame is going to be traced."""

    def tracing(self, trace: Trace) -> None:
        """A trace of the frame begins, perhaps not the first one."""

    def broke(self, event: Broke) -> None:
        """The graph was broken, or a frame given up."""

    def recompiled(self, record: RecompileRecord) -> None:
        """A frame is going to be traced again, because a guard failed."""

    def calling(self, backend: str) -> None:
        """A backend of this name is going to compile a graph."""

    def called(self, event: Called) -> None:
        """A backend has compiled a graph, or failed."""

    def compiled(self, event: Compiled) -> None:
        """What `begun` told of is over, with an entry or without."""


class Listeners(Listener):
    """Tells all of them."""

    def __init__(self) -> None:
        self.all: tuple[Listener, ...] = ()

    def begun(self, code: CodeType) -> None:
        for listener in self.all:
            listener.begun(code)

    def tracing(self, trace: Trace) -> None:
        for listener in self.all:
            listener.tracing(trace)

    def broke(self, event: Broke) -> None:
        STATS.broke(event.record)
        for listener in self.all:
            listener.broke(event)

    def recompiled(self, record: RecompileRecord) -> None:
        STATS.recompiled(record)
        for listener in self.all:
            listener.recompiled(record)

    def calling(self, backend: str) -> None:
        for listener in self.all:
            listener.calling(backend)

    def called(self, event: Called) -> None:
        for listener in self.all:
            listener.called(event)

    def compiled(self, event: Compiled) -> None:
        for listener in self.all:
            listener.compiled(event)

    @contextmanager
    def compiling(self, outcome: Compiled) -> Iterator[Compiled]:
        """Tells when the block begins and ends; the block puts the entry into what it is given."""
        started, backend_before = time.perf_counter(), STATS.backend_seconds
        if any(listener.wants_lines for listener in self.all):
            outcome.lines = set()
        self.begun(outcome.code)
        try:
            yield outcome
        finally:
            outcome.seconds = time.perf_counter() - started
            outcome.backend_seconds = STATS.backend_seconds - backend_before
            STATS.add_seconds(outcome.seconds, outcome.backend_seconds)
            self.compiled(outcome)


EVENTS = Listeners()


@contextmanager
def listening(listener: Listener) -> Iterator[Listener]:
    """Tell a listener what happens in the block, in whichever thread it does."""
    EVENTS.all += (listener,)
    try:
        yield listener
    finally:
        EVENTS.all = tuple(other for other in EVENTS.all if other is not listener)
