"""Reading a clock: before the graph, or after it.

    begun = time.perf_counter()            # nothing has been computed yet: read before the graph
    y = model(x)
    took = time.perf_counter() - begun     # read after it; nothing may be computed after that

A clock that is read in the middle of a graph breaks it there: no other place would show the same time. What is computed
with the readings waits for them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.space.deferred import DeferredNumber
from stator.space.operands import refuse
from stator.space.protocol import register
from stator.space.signals import Restart

if TYPE_CHECKING:
    from stator.space.host_types import Host
    from stator.space.interfaces import Trace, Writer
    from stator.space.protocol import Handler
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["Clock"]

_READERS = (
    *(time.time, time.monotonic, time.perf_counter, time.process_time, time.thread_time),
    *(time.time_ns, time.monotonic_ns, time.perf_counter_ns, time.process_time_ns, time.thread_time_ns),
)


class Clock:
    """The readings of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        #: the last one before the graph, and the last one after it
        self._early: _Reading | None = None
        self._late: _Reading | None = None
        #: the instruction that read the clock first after an operation had been recorded, and what it called
        self._step = 0
        self._name = ""

    def read(self, function: Host) -> Value:
        """What the function will have given."""
        name = f"time.{function.__name__}"
        recorder = self._trace.recorder
        if recorder is None or not recorder.nodes.operations:
            self._early = reading = _Reading(function, self._early, early=True)
        elif recorder.nodes.graph is not recorder.nodes.whole:
            raise refuse(name)  # how often the body of an operation runs is not known
        else:
            if self._late is None:
                self._step, self._name = self._trace.steps, name
            self._late = reading = _Reading(function, self._late, early=False)
        return reading

    def note_operation(self) -> None:
        """An operation is recorded: what was read before it is not read after the graph."""
        if self._late is not None:
            raise Restart(self._step, errors.UnsupportedCCall(self._name))


class _Reading(DeferredNumber):
    """A reading, which comes after an `earlier` one."""

    __slots__ = ("earlier", "early")

    def __init__(self, function: Host, earlier: _Reading | None, *, early: bool) -> None:
        super().__init__(int if function.__name__.endswith("_ns") else float, function, [])
        self.earlier = earlier
        self.early = early

    def depends_on(self) -> str:
        return "the time, which is read when the graph has run"

    def describe(self) -> str:
        return "the time"

    def reconstruct(self, writer: Writer) -> str:
        if self.earlier is not None:
            writer.expr(self.earlier)
        if not self.early:
            return super().reconstruct(writer)
        name = writer.name("begun")
        writer.first.append(f"{name} = {writer.const(self.function)}()")
        return name


def _reader(function: Any) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        return None if args or kwargs else space.trace.extension(Clock).read(function)

    return handler


for _function in _READERS:
    register(_function, _reader(_function))
