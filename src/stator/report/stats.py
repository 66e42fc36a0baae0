"""Counting what happened: `stator.stats()`."""

from __future__ import annotations

import dataclasses
import json
import threading
from collections import deque
from typing import Any

from stator.bytecode.by_code import ByCode
from stator.controls import logs

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
    """

    code: str
    reason: str
    where: str
    count: int = 1


@dataclasses.dataclass(frozen=True)
class RecompileRecord:
    """One recompilation: the function, and the guard that failed."""

    where: str
    reason: str


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
        before = {(b.code, b.reason, b.where): b.count for b in earlier.breaks}
        breaks = []
        for b in self.breaks:
            count = b.count - before.get((b.code, b.reason, b.where), 0)
            if count > 0:
                breaks.append(dataclasses.replace(b, count=count))
        since = numbers["recompiles"]
        log = self.recompile_log[-since:] if since > 0 else ()
        return Stats(**numbers, breaks=tuple(breaks), recompile_log=log)

    def to_json(self) -> str:
        """The figures as a JSON object."""
        return json.dumps(dataclasses.asdict(self))


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
        self.breaks: dict[tuple[str, str, str], int] = {}
        self.recompile_log: deque[RecompileRecord] = deque(maxlen=_MOST_RECORDS)
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
        key = (record.code, record.reason, record.where)
        with self._lock:
            self.graph_breaks += 1
            self.breaks[key] = self.breaks.get(key, 0) + 1
            if len(self.breaks) > _MOST_RECORDS:
                del self.breaks[next(iter(self.breaks))]
        logs.say_break(record.where, record.code, record.reason)

    def recompiled(self, where: str, reason: str) -> None:
        """A frame is compiled again because a guard failed."""
        with self._lock:
            self.recompiles += 1
            self.recompile_log.append(RecompileRecord(where, reason))
        logs.say_recompile(where, reason)

    def add_seconds(self, total: float, backend: float) -> None:
        """Time spent on one miss, and how much of it in the backend."""
        with self._lock:
            self.trace_seconds += total - backend

    def snapshot(self, cache_hits: int) -> Stats:
        """The figures now."""
        with self._lock:
            breaks = tuple(BreakRecord(*key, count) for key, count in self.breaks.items())
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
                recompile_log=tuple(self.recompile_log),
            )


STATS = Counters()
