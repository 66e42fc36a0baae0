"""Counting what happened: `stator.stats()`."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from stator.bytecode.by_code import ByCode
from stator.report.source_lines import line_at

#: recompilations, and kinds of graph breaks, that are remembered: the last ones
_MOST_RECORDS = 10_000


@dataclasses.dataclass(frozen=True)
class BreakRecord:
    """One kind of graph break at one place.

    Attributes:
        code: the catalogue's code, as for `stator why CODE`.
        reason: what happened, in one sentence.
        where: "file.py:line" of the user's code.
        count: how often.
        inside: "file.py:line" of the library that the user's line has called, where it broke in there; else "".
    """

    code: str
    reason: str
    where: str
    count: int = 1
    inside: str = dataclasses.field(default="", repr=False)


@dataclasses.dataclass(frozen=True)
class RecompileRecord:
    """Recompilations of one function for one reason.

    Attributes:
        where: the function, with "file.py:line" of its definition.
        reason: what has changed, in one sentence with the program's names.
        line: "file.py:line" of the user's code that depends on it; "" where no single line does.
        hint: what to do about it, where that is known.
        was: the value that was there, where the reason is that one thing has another; else "".
        now: the value that is there.
        count: how often.
        also: what else has changed, which forbids what the hint promises.
    """

    where: str
    reason: str
    line: str = ""
    hint: str = ""
    was: str = ""
    now: str = ""
    count: int = 1
    also: str = ""

    @property
    def function(self) -> str:
        """The name of the function."""
        return self.where.partition(" (")[0]

    @property
    def definition(self) -> str:
        """ "file.py:line" of the function."""
        return self.where.partition(" (")[2].removesuffix(")")

    @property
    def change(self) -> str:
        """All that has changed, as far as it is told."""
        return f"{self.reason}; also, {self.also}" if self.also else self.reason

    @property
    def sentence(self) -> str:
        """What has changed, and where it matters."""
        return f"{self.change}; needed at {self.line}" if self.line else self.change

    def __str__(self) -> str:
        return "\n    ".join(filter(None, (f"{self.where}: {self.sentence}", line_at(self.line), self.hint)))


_Record = TypeVar("_Record", BreakRecord, RecompileRecord)


@dataclasses.dataclass(frozen=True)
class Stats:
    """What Stator has done since the process began or `reset()`; seconds are wall time.

    `frames` counts traces that became cache entries; `ops` the nodes that compute something in all graphs.
    """

    frames: int = 0
    graphs: int = 0
    graph_breaks: int = 0
    recompiles: int = 0
    cache_hits: int = 0
    ops: int = 0
    guards: int = 0
    trace_seconds: float = 0.0
    backend_seconds: float = 0.0
    restored: int = 0
    breaks: tuple[BreakRecord, ...] = ()
    recompile_log: tuple[RecompileRecord, ...] = ()

    def diff(self, earlier: Stats) -> Stats:
        """What was added since `earlier`."""
        numbers = {
            f.name: getattr(self, f.name) - getattr(earlier, f.name)
            for f in dataclasses.fields(self)
            if f.name not in ("breaks", "recompile_log")
        }
        breaks = tuple(_added(self.breaks, earlier.breaks))
        return Stats(**numbers, breaks=breaks, recompile_log=tuple(_added(self.recompile_log, earlier.recompile_log)))

    def to_json(self) -> str:
        """The figures as a JSON object."""
        return json.dumps(dataclasses.asdict(self))


def _added(records: Iterable[_Record], earlier: Iterable[_Record]) -> Iterator[_Record]:
    """What has been counted since."""
    before = {dataclasses.replace(record, count=0): record.count for record in earlier}
    for record in records:
        count = record.count - before.get(dataclasses.replace(record, count=0), 0)
        if count > 0:
            yield dataclasses.replace(record, count=count)


class Counters:
    """The process's counters; updates are made under a lock, as two threads may trace at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.codes = ByCode[bool]()
        self.reset()

    def reset(self) -> None:
        """Back to zero."""
        self.frames = self.graphs = self.recompiles = self.ops = self.guards = self.restored = 0
        self.trace_seconds = self.backend_seconds = 0.0
        self.graph_breaks = 0
        self.breaks: dict[BreakRecord, int] = {}
        self.recompile_log: dict[RecompileRecord, int] = {}
        self.codes.clear()

    def frame(self, trace: Any, residual: Any, guards: int) -> None:
        """A trace has become an entry."""
        with self._lock:
            self.frames += 1
            self.guards += guards
            for code in trace.calls.codes.values():
                self.codes.keep(code, True)
            if residual.graph is not None:
                self.graphs += 1
                self.ops += residual.graph.ops

    def broke(self, record: BreakRecord) -> None:
        """A graph break, or a frame given up."""
        with self._lock:
            self.graph_breaks += 1
            self.breaks[record] = self.breaks.get(record, 0) + 1
            if len(self.breaks) > _MOST_RECORDS:
                del self.breaks[next(iter(self.breaks))]

    def recompiled(self, reason: RecompileRecord) -> None:
        """A frame is compiled again because a guard failed."""
        with self._lock:
            self.recompiles += 1
            self.recompile_log[reason] = self.recompile_log.get(reason, 0) + 1
            if len(self.recompile_log) > _MOST_RECORDS:
                del self.recompile_log[next(iter(self.recompile_log))]

    def recompiles_of(self, where: str) -> list[RecompileRecord]:
        """Why a function has been compiled again."""
        return [record for record in self._recompile_log() if record.where == where]

    def _recompile_log(self) -> list[RecompileRecord]:
        with self._lock:
            return [dataclasses.replace(record, count=count) for record, count in self.recompile_log.items()]

    def add_seconds(self, total: float, backend: float) -> None:
        """Time spent on one miss, and how much of it in the backend."""
        with self._lock:
            self.trace_seconds += total - backend

    def snapshot(self, cache_hits: int) -> Stats:
        """The figures now."""
        log = tuple(self._recompile_log())
        with self._lock:
            breaks = tuple(dataclasses.replace(record, count=count) for record, count in self.breaks.items())
            return Stats(
                frames=self.frames,
                graphs=self.graphs,
                graph_breaks=self.graph_breaks,
                recompiles=self.recompiles,
                cache_hits=cache_hits,
                ops=self.ops,
                guards=self.guards,
                trace_seconds=self.trace_seconds,
                backend_seconds=self.backend_seconds,
                restored=self.restored,
                breaks=breaks,
                recompile_log=log,
            )


STATS = Counters()
