"""Host exceptions by which the interpreter ends a trace, and the state of a frame at that point."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from stator.bytecode.decode import Instr
    from stator.errors import Break
    from stator.space.interfaces import Frame
    from stator.space.value import Value

Mode = Literal["native", "enter", "call"]


class FrameState:
    """A frame at the moment a trace ended.

    mode "native": `instr` is to be executed as ordinary Python (its operands are on `stack`); "enter": execution goes
    on at `instr`; "call": `instr` is a call in progress whose operands are popped, the callee's result is to be pushed.
    """

    __slots__ = ("frame", "instr", "locals", "mode", "stack")

    def __init__(self, frame: Frame, instr: Instr, stack: list[Value], mode: Mode) -> None:
        self.frame = frame
        self.instr = instr
        self.stack = stack
        self.mode = mode
        self.locals = dict(frame.locals)


class BreakHere(BaseException):
    """A graph break: `states` are the frames that will be resumed, innermost first."""

    def __init__(self, brk: Break, states: list[FrameState]) -> None:
        super().__init__(str(brk))
        self.brk = brk
        self.states = states


class DoFirst(BaseException):
    """Something is to be done for real before the trace can go on: do it, and trace again.

    Args:
        what: names it; it is done once in a compilation.
        action: does it. Where it fails, what the program does next says so. None where all that is to be done is that
            the next trace knows (`trace.done_first`).
    """

    def __init__(self, what: str, action: Callable[[], object] | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.action = action


class RunsAsItIs(BaseException):
    """The frame is ordinary Python around what is compiled, and runs so for arguments like these: no break.

    Args:
        computes_nothing: so it does as well for others, if it has been found of several.
    """

    def __init__(self, *, computes_nothing: bool = False) -> None:
        super().__init__()
        self.computes_nothing = computes_nothing


class NearRecursionLimit(BaseException):
    """The program may meet its recursion limit in what is traced: this time it runs as ordinary Python."""


class Restart(BaseException):
    """The break lies inside an instruction that has already changed something: trace again up to before it."""

    def __init__(self, step: int, brk: Break, *, inside: bool = False) -> None:
        super().__init__(str(brk))
        self.step = step
        self.brk = brk
        #: whether the trace has just met the break, and so knows its place inside of the instruction
        self.inside = inside
