"""What the user is told of a trace: which of their lines it was at, where and why it broke."""

from __future__ import annotations

import itertools
import sys
import traceback
from types import CodeType
from typing import TYPE_CHECKING

from stator import errors
from stator.bytecode.by_code import ByCode
from stator.errors.message import place
from stator.guards.base import short_name
from stator.interp.policy import is_library, is_users, users_frame
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.bytecode.decode import Instr
    from stator.errors import Break
    from stator.space.interfaces import Frame


#: of codes that go on behind a break, the latest one: its code and place
_BEHIND = ByCode[tuple[str, str]]()


def break_before(code: CodeType) -> tuple[str, str] | None:
    """The code and the place of the break behind which this code goes on; None for any other code."""
    return _BEHIND.find(code)


class BreakReport:
    """The user's stack at the break, and the failure of Stator's own that has caused it, if one has."""

    def __init__(self, verbose: bool) -> None:
        self._verbose = verbose
        #: code and instruction of each frame, innermost first
        self.stack: list[tuple[CodeType, Instr]] = []
        self.host_failure: Exception | None = None
        #: the codes that go on behind the break
        self.resumed: list[CodeType] = []
        #: the break at which this trace is to stop, and the stack where the trace before it has met it
        self.met_before: tuple[Break, list[tuple[CodeType, Instr]]] | None = None

    def note_site(self, frame: Frame, instr: Instr, brk: Break) -> None:
        """Remember the user stack of the innermost frame in which a break was met."""
        if self.stack:
            return
        if self.met_before is not None and self.met_before[0] is brk:
            self.stack = self.met_before[1]
            return
        at: Frame | None = frame
        while at is not None:
            self.stack.append((at.code, instr if at is frame else at.instrs[max(at.index - 1, 0)]))
            at = at.parent

    def note_resumed(self, brk: Break) -> None:
        """Remember the break of the frames that go on behind it."""
        for code in self.resumed:
            _BEHIND.keep(code, (brk.code, self.where()))

    def codes_within(self, frame: Frame) -> list[CodeType]:
        """The code of the frame, and of those inside of it in which the break was met."""
        depth, at = 0, frame.parent
        while at is not None:
            depth, at = depth + 1, at.parent
        return [code for code, _ in self.stack[: max(len(self.stack) - depth, 0)]]

    def host_error(self, error: Exception, frame: Frame | None) -> Unsupported:
        """A failure of Stator's own while executing one instruction: that instruction is left to Python."""
        self.host_failure = error
        if self._verbose:
            traceback.print_exception(error, file=sys.stderr)
        where = traceback.extract_tb(error.__traceback__)[-1]
        failure = f"{type(error).__name__}: {error} ({where.filename.rsplit('/', 1)[-1]}:{where.lineno})"
        name = frame.code.co_qualname if frame is not None else "?"
        return Unsupported(errors.HostErrorWhileTracing(name, failure))

    def where(self) -> str:
        """`file.py:12` of the innermost line of the user's own, be it one that has called what is traced."""
        own = next((entry for entry in self.stack if is_users(entry[0].co_filename)), None)
        if own is not None:
            return place(_summary(*own))
        caller = _users_caller()
        if caller is not None:
            return place(caller)
        return place(_summary(*self.stack[0])) if self.stack else "?"

    def user_stack(self) -> tuple[traceback.FrameSummary, ...]:
        """The user's stack, outermost first, a line each; with frames of libraries if there are no others, or all are
        wanted."""
        frames = self.stack if self._verbose else [entry for entry in self.stack if not is_library(entry[0])]
        told = [_summary(*entry) for entry in reversed(frames or self.stack)]
        caller = None if any(is_users(frame.filename) for frame in told) else _users_caller()
        return _by_lines(told if caller is None else [caller, *told])


def _by_lines(frames: list[traceback.FrameSummary]) -> tuple[traceback.FrameSummary, ...]:
    """Each line once in a row: a comprehension has a frame of its own, in that of the function, whose name is kept."""
    told: list[traceback.FrameSummary] = []
    for frame in frames:
        if told and place(told[-1]) == place(frame):
            frame.name = told.pop().name
        told.append(frame)
    return tuple(told)


def _summary(code: CodeType, instr: Instr) -> traceback.FrameSummary:
    """A frame as tracebacks show it, with the columns of the instruction."""
    line, name = instr.line or code.co_firstlineno, short_name(code.co_qualname)
    first, last, start, end = next(itertools.islice(code.co_positions(), instr.offset >> 1, None))
    if first != line:
        return traceback.FrameSummary(code.co_filename, line, name)
    return traceback.FrameSummary(code.co_filename, line, name, end_lineno=last, colno=start, end_colno=end)


def _users_caller() -> traceback.FrameSummary | None:
    """The user's own line that has called the library whose frame is traced."""
    at = users_frame()
    if at is None:
        return None
    return traceback.FrameSummary(at.f_code.co_filename, at.f_lineno, short_name(at.f_code.co_qualname))


def users_line(frame: Frame) -> tuple[CodeType, int] | None:
    """The innermost line of the program's own; None where all that is traced is a library's."""
    at: Frame | None = frame
    while at is not None and is_library(at.code):
        at = at.parent
    return None if at is None else (at.code, at.line())
