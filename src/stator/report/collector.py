"""Collects what happens while a program is compiled, and makes an `Explanation` of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, groupby, repeat
from types import CodeType
from typing import TYPE_CHECKING

from stator.bytecode.continuation import resume_line
from stator.guards.cost import guard_costs
from stator.guards.intern import sources_of
from stator.host.collector import paused
from stator.interp.policy import is_library_file
from stator.report.events import Broke, Called, Compiled, Listener, listening
from stator.report.explanation import BreakSite, Explanation, FrameRecord, GraphRecord, StackLine
from stator.report.graphs import Type, graph_record, result_types
from stator.report.guard_records import GuardRecords
from stator.report.offered import offered
from stator.report.source_lines import lines_around

if TYPE_CHECKING:
    from traceback import FrameSummary

    from stator._core import Entry
    from stator.report.stats import RecompileRecord
    from stator.space.host_types import Host

__all__ = ["Collector", "explaining", "graph_inputs", "guard_records"]


@contextmanager
def explaining(name: str, thread: int | None = None) -> Iterator[Collector]:
    """Collect what happens in the block: in one thread, or in all."""
    collector = Collector(name, thread)
    with listening(collector):
        try:
            yield collector
        finally:
            collector.end()


class _Opened:
    """A frame that is being compiled, or has been."""

    def __init__(self, code: CodeType, started: float, recompiled: RecompileRecord | None) -> None:
        self.code = code
        self.started = started
        self.recompiled = recompiled
        self.brk: BreakSite | None = None
        self.called: tuple[Called, dict[str, Type]] | None = None
        self.guards = GuardRecords()
        self.generated = ""
        #: where the program has the inputs of the graph
        self.inputs: tuple[str, ...] = ()
        self.seconds = self.backend_seconds = 0.0
        self.lines: set[tuple[str, int]] = set()
        self.entry: Entry | None = None

    def record(self) -> FrameRecord:
        """What there is to tell of it."""
        code = self.code
        return FrameRecord(
            code.co_qualname, code.co_filename, code.co_firstlineno, resume_line(code), self.started,
            self.seconds - self.backend_seconds, self.backend_seconds, _by_file(self.lines), self._graph(), self.brk,
            self.guards, self.generated, self.recompiled, 0 if self.entry is None else self.entry.hits,
        )  # fmt: skip

    def _graph(self) -> GraphRecord | None:
        if self.called is None:
            return None
        event, types = self.called
        return graph_record(event.gm, types, self.inputs, event)


class Collector(Listener):
    """Keeps what happens as plain data; graphs are written down when all is over."""

    wants_lines = True

    def __init__(self, name: str, thread: int | None = None) -> None:
        self.name = name
        self._breaks: list[BreakSite] = []
        self._recompiles: list[RecompileRecord] = []
        #: in the order in which they were begun
        self._frames: list[_Opened] = []
        #: those that are being compiled, by thread
        self._open: dict[int, list[_Opened]] = {}
        self._recompiled: dict[int, RecompileRecord] = {}
        self._thread = thread
        self._began = time.perf_counter()
        self._seconds = 0.0

    def end(self) -> None:
        """Nothing more will happen."""
        self._seconds = time.perf_counter() - self._began

    # -- what is told -------------------------------------------------------------------------------------------------

    def begun(self, code: CodeType) -> None:
        thread = threading.get_ident()
        opened = _Opened(code, time.perf_counter() - self._began, self._recompiled.pop(thread, None))
        self._open.setdefault(thread, []).append(opened)
        if self._is_listened_to():
            self._frames.append(opened)

    def recompiled(self, record: RecompileRecord) -> None:
        if self._is_listened_to():
            self._recompiles.append(record)
            self._recompiled[threading.get_ident()] = record

    def broke(self, event: Broke) -> None:
        if not self._is_listened_to():
            return
        brk = event.brk
        stack = tuple(map(_stack_line, event.stack))
        within = None if event.within is None else _stack_line(event.within)
        hint = brk.hint if event.cause is None else event.cause.hint
        site = BreakSite(brk.code, brk.title, brk.reason, hint, event.where, stack, within)
        self._breaks.append(site)
        opened = self._open.get(threading.get_ident())
        if opened:
            opened[-1].brk = site

    def called(self, event: Called) -> None:
        opened = self._open.get(threading.get_ident())
        if opened:
            opened[-1].called = event, result_types(event.gm)

    def compiled(self, event: Compiled) -> None:
        opened = self._open.get(threading.get_ident())
        if opened:
            self._note(opened.pop(), event)

    def _note(self, opened: _Opened, event: Compiled) -> None:
        called = event.names.called
        # What only passes its arguments on, as modules do, is no function of the program's.
        opened.code = event.code if called is None else called.code
        opened.seconds, opened.backend_seconds = event.seconds, event.backend_seconds
        opened.lines = event.lines or set()
        opened.entry = event.entry
        if event.entry is not None:
            opened.guards = guard_records(event)
            owner = event.entry.owner
            if owner is not None:
                opened.generated = owner.text
                opened.inputs = graph_inputs(event)

    def _is_listened_to(self) -> bool:
        return self._thread in (None, threading.get_ident())

    # -- what is made of it -------------------------------------------------------------------------------------------

    def explanation(self, result: Host = None) -> Explanation:
        """All that has been told."""
        with paused():  # thousands of small records that live: each walk over them would free nothing
            return self._explanation(result)

    def _explanation(self, result: Host) -> Explanation:
        frames = tuple(opened.record() for opened in self._frames)
        places = dict.fromkeys([*chain.from_iterable(map(_places, frames)), *(site.where for site in self._breaks)])
        sources = lines_around(place for place in places if not is_library_file(place))
        breaks, recompiles = tuple(self._breaks), tuple(self._recompiles)
        offers = tuple(offered(breaks, recompiles, sources))
        return Explanation(self.name, frames, breaks, recompiles, sources, self._seconds, offers, result)


def guard_records(event: Compiled) -> GuardRecords:
    """The guards in the program's names, with their costs; none without an entry."""
    if event.entry is None:
        return GuardRecords()
    program: Host = event.entry.program
    guards, names = program.guards, event.names
    texts = tuple([guard.told(names) for guard in guards])
    places: list[str] = []
    for _, of_line in groupby(guards, lambda guard: guard.where):
        same = list(of_line)
        places += repeat(same[0].place(), len(same))  # one text for all that the line has
    return GuardRecords(texts, tuple(places), guard_costs(program, event.function, event.args) or (0,) * len(texts))


def graph_inputs(event: Compiled) -> tuple[str, ...]:
    """Where the program has the inputs of the graph, in their order; () without a graph."""
    graph = None if event.entry is None else event.entry.owner.graph
    inputs = () if graph is None else graph.inputs
    return tuple(event.names.of(source) for item in inputs for source in sources_of(item))


def _stack_line(frame: FrameSummary) -> StackLine:
    return StackLine(frame.filename, frame.lineno or 0, frame.name, frame.line or "")


def _by_file(lines: set[tuple[str, int]]) -> dict[str, tuple[int, ...]]:
    by_file: dict[str, list[int]] = {}
    for file, line in sorted(lines):
        by_file.setdefault(file, []).append(line)
    return {file: tuple(numbers) for file, numbers in by_file.items()}


def _places(frame: FrameRecord) -> Iterator[str]:
    """All lines of the program that there is something to say about."""
    yield frame.where
    yield from (f"{file}:{line}" for file, lines in frame.lines.items() for line in lines)
    yield from filter(None, dict.fromkeys(frame.guards.places))
