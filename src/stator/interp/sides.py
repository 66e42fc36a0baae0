"""The two sides of a branch that is not decided: each is executed on a copy of the frame, up to where they meet again.

    if t.any():      # a branch
        y = x * 2    # one side
    z = y + 1        # here the sides meet; of sides that return, what they return is what they have on the stack

What becomes of the two is the affair of a hook (`branches.CAPTURES`). Sides that do more than compute and assign
variables of the frame are none to it; what can be told of that from the code alone is told here.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from stator.bytecode import is_suspendable
from stator.bytecode.decode import Instr
from stator.bytecode.liveness import live_names
from stator.bytecode.stack import reached
from stator.interp.frame import Frame
from stator.space.value import Value

if TYPE_CHECKING:
    from stator.bytecode.decode import Decoded
    from stator.space import interfaces

__all__ = ["Side", "Sides"]


class _Meeting:
    """Where the sides of a branch meet: at one instruction that both come by, or where they return (`end` is None).

    `instrs` are what a side is executed by: at that instruction it returns.
    """

    __slots__ = ("end", "instrs")

    def __init__(self, decoded: Decoded, end: int | None) -> None:
        self.end = end
        self.instrs = decoded.instrs if end is None else _ending(decoded.instrs, end)


def _ending(instrs: tuple[Instr, ...], end: int) -> tuple[Instr, ...]:
    """The instructions, with another ending behind them in the place of one."""
    met, behind = instrs[end], len(instrs)
    ending = (("JUMP", behind, end), ("LOAD_CONST", None, behind), ("RETURN_VALUE", None, behind + 1))
    jump, *rest = (Instr(op, arg, index, met.offset, met.line, None, met.raw) for op, arg, index in ending)
    return (*instrs[:end], jump, *instrs[end + 1 :], *rest)


class Side:
    """One side, executed: where it ended, and the variables and stack that it ended with."""

    __slots__ = ("index", "locals", "stack")

    def __init__(self, frame: interfaces.Frame, index: int, met: _Meeting) -> None:
        side = Frame(frame.trace, frame.function, {}, parent=frame.parent)
        side.instrs = met.instrs
        side.locals, side.cells, side.stack = dict(frame.locals), dict(frame.cells), frame.stack[:]
        side.namespace = frame.namespace
        side.index = index
        try:
            side.run()
        finally:
            frame.trace.frame = frame
        self.index = side.index - 1 if met.end is None else met.end
        live = live_names(frame.decoded, self.index)
        #: by names: those that may still be read
        self.locals = {name: value for name, value in side.locals.items() if name in live}
        self.stack: list[Value] = [side.result] if met.end is None else side.stack  # type: ignore[list-item]

    def go_on(self, frame: interfaces.Frame, locals_: dict[str, Value], stack: list[Value]) -> None:
        """The frame is where the sides have met, with these variables and this stack."""
        frame.locals, frame.stack[:] = locals_, stack
        frame.index = self.index


_met: weakref.WeakKeyDictionary[Decoded, dict[tuple[int, int, int], _Meeting | str]] = weakref.WeakKeyDictionary()


class Sides:
    """The sides of a branch that is being executed.

    `refused` says why they cannot be executed, if they cannot: what can be told from the code alone.
    """

    __slots__ = ("_met", "refused", "starts")

    def __init__(self, frame: interfaces.Frame, when_true: int, when_false: int) -> None:
        #: where the true side begins, and the false one
        self.starts = when_true, when_false
        self._met = self._found(frame)
        self.refused = self._met if isinstance(self._met, str) else None

    def _found(self, frame: interfaces.Frame) -> _Meeting | str:
        if is_suspendable(frame.code):
            return "it is in a generator"
        if frame.handling.infos:
            return "an exception is being handled"
        known = _met.setdefault(frame.decoded, {})
        branch = frame.index - 1
        key = branch, *self.starts
        if key not in known:
            known[key] = _meeting(frame.decoded, branch, self.starts)
        return known[key]

    def execute(self, frame: interfaces.Frame, start: int) -> Side:
        """Execute one of them; only what is known to be computing may be done by it."""
        assert not isinstance(self._met, str)
        return Side(frame, start, self._met)


def _meeting(decoded: Decoded, branch: int, sides: tuple[int, int]) -> _Meeting | str:
    found = [reached(decoded, index) for index in sides]
    first = _first(decoded, sides, found[0] & found[1])
    if any(branch in reached(decoded, side, () if first is None else (first,)) for side in sides):
        return "it is the condition of a loop, or leaves one"
    return _Meeting(decoded, first)


def _first(decoded: Decoded, sides: tuple[int, int], among: set[int]) -> int | None:
    """The first of these instructions, in the order of execution, that every way from both sides comes by."""
    for index in sorted(among):
        before = set[int]().union(*(reached(decoded, side, (index,)) for side in sides))
        if not any(decoded.instrs[i].op == "RETURN_VALUE" for i in before):
            earlier = _first(decoded, sides, before & among)
            return index if earlier is None else earlier
    return None
