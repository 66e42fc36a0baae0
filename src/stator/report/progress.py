"""On a terminal: how far a compile has come that takes more than a second, in one line that goes when it is over."""

from __future__ import annotations

import _thread
import sys
import time
from types import CodeType
from typing import TYPE_CHECKING, TextIO

from stator.config import current
from stator.errors.message import parted, short_path
from stator.interp.break_report import users_line
from stator.interp.loops import Loops
from stator.report.events import EVENTS, Called, Compiled, Listener

if TYPE_CHECKING:
    from stator.space.interfaces import Trace

__all__ = ["Progress", "watch"]

_COLUMNS = 79


class Watch:
    """One compile, from the outermost frame's beginning, and the thread that tells of it."""

    def __init__(self, code: CodeType, stream: TextIO, patience: float) -> None:
        self.depth = 1
        self.trace: Trace | None = None
        #: the most that the trace was seen to have: at its end its graph is taken apart
        self.operations = 0
        #: the backend at work, and since when
        self.backend: tuple[str, float] | None = None
        self.backend_seconds = 0.0
        self._code = code
        self._stream = stream
        self._patience = patience
        self._started = time.perf_counter()
        self._over, self._silent = _thread.allocate_lock(), _thread.allocate_lock()
        self._over.acquire()
        self._silent.acquire()
        # No threading.Thread: the traced program may count these.
        _thread.start_new_thread(self._tell, ())

    def end(self) -> None:
        """It is over: the line is gone when this returns."""
        self._over.release()
        self._silent.acquire()

    def _tell(self) -> None:
        try:
            wait = self._patience
            while not self._over.acquire(timeout=wait):
                self._write(f"\r{self.line()[:_COLUMNS]}\x1b[K")
                wait = self._patience / 2
            if wait != self._patience:
                self._write("\r\x1b[K")
        finally:
            self._silent.release()

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):  # closed meanwhile
            pass

    def line(self) -> str:
        """Where the compile stands."""
        now = time.perf_counter()
        name, line = self._code.co_name, self._code.co_firstlineno
        file, rounds = self._code.co_filename, ""
        trace = self.trace
        if trace is not None:
            try:  # the tracer goes on meanwhile
                if trace.recorder is not None:
                    self.operations = max(self.operations, trace.recorder.operations)
                rounds = _rounds(trace)
                at = None if trace.frame is None else users_line(trace.frame)
                if at is not None:
                    file, line, name = at[0].co_filename, at[1], at[0].co_name
            except (AttributeError, IndexError, RuntimeError):
                pass
        backend, seconds = "backend", self.backend_seconds
        if self.backend is not None:
            backend, since = self.backend
            seconds += now - since
        share = f", {backend} {seconds:.0f} s" if seconds else ""
        file = short_path(file).rpartition("/")[2]
        made = f"{self.operations} operations{rounds}"
        return f"stator: {name} ({file}:{line}): {made}, {now - self._started:.0f} s{share}"


def _rounds(trace: Trace) -> str:
    """The loop that has made most of the graph, and how often it has gone round."""
    place, (rounds, operations) = max(trace.extension(Loops).all().items(), key=_made, default=("", (0, 0)))
    return f", round {rounds} of line {parted(place)[1]}" if rounds > 1 and operations else ""


def _made(loop: tuple[str, tuple[int, int]]) -> int:
    return loop[1][1]


class Progress(Listener):
    """Watches the compiles of each thread.

    Args:
        stream: where to tell; by default the terminal.
        patience: seconds that a compile may take in silence.
    """

    def __init__(self, stream: TextIO | None = None, patience: float = 1.0) -> None:
        self._stream = sys.__stderr__ if stream is None else stream
        self._patience = patience
        self._watches: dict[int, Watch] = {}

    def begun(self, code: CodeType) -> None:
        thread = _thread.get_ident()
        watch = self._watches.get(thread)
        if watch is not None:
            watch.depth += 1
        elif self._stream is not None:
            self._watches[thread] = Watch(code, self._stream, self._patience)

    def tracing(self, trace: Trace) -> None:
        watch = self._watches.get(_thread.get_ident())
        if watch is not None:
            watch.trace, watch.operations = trace, 0

    def calling(self, backend: str) -> None:
        watch = self._watches.get(_thread.get_ident())
        if watch is not None:
            watch.backend = backend, time.perf_counter()

    def called(self, event: Called) -> None:
        watch = self._watches.get(_thread.get_ident())
        if watch is not None:
            watch.backend = None
            watch.backend_seconds += event.seconds

    def compiled(self, event: Compiled) -> None:
        thread = _thread.get_ident()
        watch = self._watches.get(thread)
        if watch is None:
            return
        watch.depth -= 1
        if not watch.depth:
            del self._watches[thread]
            watch.end()


def watch() -> None:
    """Listen, if what is told is wanted there: asked once, as the tracer is loaded."""
    wanted, stream = current().progress, sys.__stderr__
    if wanted == "always" or (wanted == "terminal" and stream is not None and stream.isatty()):
        EVENTS.all += (Progress(),)
