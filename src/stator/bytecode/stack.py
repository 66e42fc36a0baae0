"""What each canonical instruction does to the stack: the depth, and the exceptions being handled, before each."""

from __future__ import annotations

import weakref
from collections.abc import Container, Sequence

from .canonical import CANONICAL, JUMPS
from .decode import Decoded, Instr

_LAST = frozenset(op for op, row in CANONICAL.items() if row.last)
_QUIET = frozenset(op for op, row in CANONICAL.items() if row.quiet)
_FIXED: dict[str, int] = {
    op: len(row.after) - len(row.before) for op, row in CANONICAL.items() if "…" not in "".join(row.before + row.after)
}


def effect(instr: Instr, *, jump: bool = False) -> int:
    """By how much the instruction changes the depth when it falls through, or when it jumps."""
    fixed = None if jump else _FIXED.get(instr.op)
    if fixed is not None:
        return fixed
    row = CANONICAL[instr.op]
    return row.pushes(instr.arg, jump=jump) - row.pops(instr.arg)


def successors(instr: Instr) -> list[tuple[int, int]]:
    """(index, change of depth) of each instruction that may come next without an exception."""
    found = []
    if instr.op in JUMPS:
        found.append((instr.arg, effect(instr, jump=True)))
    if instr.op not in _LAST:
        found.append((instr.index + 1, effect(instr)))
    return found


def reached(decoded: Decoded, start: int, without: Container[int] = ()) -> set[int]:
    """Every instruction that may be executed from one on, no exception raised, but for some and what follows them."""
    found: set[int] = set()
    pending = [start]
    while pending:
        index = pending.pop()
        if index not in found and index not in without:
            found.add(index)
            pending += [target for target, _ in successors(decoded.instrs[index])]
    return found


class StackError(Exception):
    """Two paths reach an instruction with different depths: the decoder is wrong about something."""


class _Shapes:
    """The depth before each instruction, and how many exceptions are then being handled; -1 where no path leads."""

    def __init__(self, decoded: Decoded) -> None:
        instrs = decoded.instrs
        self.depths = [-1] * len(instrs)
        self.handled = [-1] * len(instrs)
        pending = [(0, 0, 0)] if instrs else []
        while pending:
            index, depth, handled = pending.pop()
            if self._known(instrs[index], depth, handled):
                continue
            instr = instrs[index]
            handler = instr.handler
            if handler is not None and instr.op not in _QUIET:
                if handler.depth > depth:
                    raise StackError(f"{instr!r}: depth {depth} under its handler's {handler.depth}")
                pending.append((handler.target, handler.depth + 1 + handler.push_lasti, handled))
            handled += (instr.op == "PUSH_EXC_INFO") - (instr.op == "POP_EXCEPT")
            pending += [(target, depth + change, handled) for target, change in successors(instr)]

    def _known(self, instr: Instr, depth: int, handled: int) -> bool:
        index = instr.index
        if self.depths[index] < 0:
            if depth < 0 or handled < 0:
                raise StackError(f"{instr!r}: depth {depth}, {handled} handled")
            self.depths[index], self.handled[index] = depth, handled
            return False
        if (self.depths[index], self.handled[index]) != (depth, handled):
            raise StackError(f"{instr!r}: {self.depths[index], self.handled[index]} and {depth, handled}")
        return True


_cache: weakref.WeakKeyDictionary[Decoded, _Shapes] = weakref.WeakKeyDictionary()


def _shapes(decoded: Decoded) -> _Shapes:
    found = _cache.get(decoded)
    if found is None:
        found = _cache[decoded] = _Shapes(decoded)
    return found


def depths(decoded: Decoded) -> Sequence[int]:
    """The depth of the stack before each instruction; -1 where no path leads."""
    return _shapes(decoded).depths


def handled(decoded: Decoded) -> Sequence[int]:
    """How many exceptions the frame is handling before each instruction; -1 where no path leads."""
    return _shapes(decoded).handled
