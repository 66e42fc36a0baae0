"""Tracebacks: where an exception has passed through frames."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING

from stator.bytecode.continuation import original_of
from stator.bytecode.decode import Instr, decode
from stator.bytecode.runtime import Place
from stator.guards.source import Source
from stator.models.functions.frame_ import Frames, FrameValue
from stator.space.host_types import Host
from stator.space.interfaces import Frame, Writer
from stator.space.operands import host_errors
from stator.space.protocol import bad_call, models
from stator.space.space import Space
from stator.space.value import Constant, ObjectValue, Value

if TYPE_CHECKING:
    from stator.models.exceptions.exception import ExceptionValue


_NAMES = ("tb_frame", "tb_next", "tb_lasti", "tb_lineno")


class Passed:
    """A frame that an exception has left (or was caught in), and where in it."""

    __slots__ = ("frame", "instr", "line")

    def __init__(self, frame: Frame, instr: Instr) -> None:
        self.frame = frame
        frame.afterlife.shown = True
        self.instr = instr
        self.line = instr.line

    def place(self) -> Place:
        """The entry as the program's own function has it, of which the frame may execute a continuation."""
        frame = self.frame
        code, at = original_of(frame.code, self.instr.index)
        # Where a frame that goes on will end is not known: most often, sending the exception on takes it back there.
        last = at if frame.afterlife.resumed else original_of(frame.code, frame.last().index)[1]
        instrs = decode(code).instrs
        return Place(id(frame), code, frame.globals, instrs[at].offset, self.line, instrs[last].offset)


class Told(Passed):
    """An entry that the program has made itself, of a frame of the trace."""

    __slots__ = ("at",)

    def __init__(self, frame: Frame, at: int, line: int) -> None:
        super().__init__(frame, frame.last())
        self.at = at
        self.line = line

    def place(self) -> Place:
        return super().place()._replace(at=self.at)


def _leads_to(frame: Frame, entries: list[Passed]) -> bool:
    """Whether the frame is that of the outermost entry, or one that has called it."""
    at: Frame | None = entries[-1].frame if entries else frame
    while at is not None and at is not frame:
        at = at.parent
    return at is frame


def places(entries: list[Passed]) -> list[Place]:
    """The entries for generated code, innermost first."""
    return [entry.place() for entry in entries]


def callers(entries: list[Passed]) -> list[Place]:
    """Where the traced frames are that have called the outermost of these."""
    found, at = [], entries[-1].frame.parent
    while at is not None:
        found.append(Passed(at, at.last()).place())
        at = at.parent
    return found


@models(types.TracebackType)
class TracebackValue(ObjectValue):
    """A traceback: that of an exception of the trace, or an existing one."""

    __slots__ = ("entries", "exception", "inner")
    FIELDS = {
        "tb_next": lambda self, space: self._next(space),
        "tb_frame": lambda self, space: space.trace.extension(Frames).value(self.entries[-1].frame),
        "tb_lasti": lambda self, space: Constant(self.entries[-1].place().at),
        "tb_lineno": lambda self, space: Constant(self.entries[-1].line),
    }

    def __init__(self, entries: list[Passed], exception: ExceptionValue | None = None) -> None:
        super().__init__(types.TracebackType)
        self.exception = exception
        #: innermost first; the traceback object itself stands for the last
        self.entries = entries
        #: what follows, where the program has made the object itself
        self.inner: Value | None = None

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> TracebackValue:
        space.guard_type(host, source)
        self = cls([])
        self.host, self.source = host, source
        return self

    @staticmethod
    def tp_new(space: Space, cls: Value, tb_next: Value, tb_frame: Value, tb_lasti: Value, tb_lineno: Value) -> Value:
        inner, frame = tb_next.force(), tb_frame.force()
        entries = inner.entries if isinstance(inner, TracebackValue) else []
        new = entries or inner.is_none()
        if not isinstance(frame, FrameValue) or not new or not _leads_to(frame.frame, entries):
            return bad_call(space, types.TracebackType, [tb_next, tb_frame, tb_lasti, tb_lineno], {})
        at, line = (space.int_(space.index(number)) for number in (tb_lasti, tb_lineno))
        with host_errors(space, OverflowError):
            types.TracebackType(None, sys._getframe(), at, line)
        if line == -1:  # from 3.12 on: that of `at`
            return space.unmodelled(types.TracebackType, [tb_next, tb_frame, tb_lasti, tb_lineno], {})
        made = TracebackValue([*entries, Told(frame.frame, at, line)])
        made.inner = inner
        return made

    def get_field(self, space: Space, name: str) -> Value | None:
        return None if self.source is not None else super().get_field(space, name)

    def _next(self, space: Space) -> Value | None:
        if self.inner is not None:
            return self.inner
        return None if self.exception is None else self.exception.traceback_after(space, len(self.entries) - 1)

    def tp_dir(self, space: Space) -> Value:
        """`tb_dir`: the same of all."""
        return space.new_list([Constant(name) for name in _NAMES])

    def rebuilt(self, writer: Writer) -> str:
        exc = self.exception
        if exc is None or exc.source is not None or exc.tb_entries[: len(self.entries)] != self.entries:
            return super().rebuilt(writer)
        outer = len(exc.tb_entries) - len(self.entries)
        return writer.assign("traceback", f"{writer.expr(exc)}.__traceback__{'.tb_next' * outer}")
