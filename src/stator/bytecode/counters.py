"""Which variables of a continuation are numbers that will be others the next time: they number the rounds of a loop
that it goes on in, or hold what has been drawn.
"""

from __future__ import annotations

from types import CodeType

from .by_code import ByCode
from .continuation import entered_at
from .decode import Decoded, decode

__all__ = ["counters", "note_varying"]

_STEPS = frozenset({"+", "+=", "-", "-="})

_known = ByCode[frozenset[str]]()
_varying = ByCode[frozenset[str]]()


def note_varying(code: CodeType, names: frozenset[str]) -> None:
    """Remember that these variables of a continuation hold numbers that are others each time."""
    if names:
        _varying.keep(code, names | (_varying.find(code) or names))


def counters(code: CodeType) -> frozenset[str]:
    """The variables that a loop around the place where the continuation begins counts in, and those that are known to
    vary; none for any other code.

    A loop counts in those that `for` binds, and those that it adds a constant to (`steps += 1`).
    """
    return _known.of(code, _counters) | (_varying.find(code) or frozenset())


def _counters(code: CodeType) -> frozenset[str]:
    place = entered_at(code)
    if place is None:
        return frozenset()
    decoded, entry = decode(place[0]), place[1]
    found: set[str] = set()
    for instr in decoded.instrs:
        if isinstance(instr.arg, int) and "JUMP" in instr.op and instr.arg <= entry <= instr.index:
            found.update(_counted(decoded, instr.arg, instr.index))
    return frozenset(found)


def _counted(decoded: Decoded, begin: int, end: int) -> list[str]:
    """The variables that the instructions of a loop count in."""
    instrs = decoded.instrs[begin : end + 1]
    found = []
    for index, instr in enumerate(instrs):
        if instr.op != "STORE_FAST":
            continue
        before = [each.op for each in instrs[max(index - 3, 0) : index]]
        if before[-1:] == ["FOR_ITER"] or before[-2:] == ["FOR_ITER", "UNPACK_SEQUENCE"]:
            found.append(instr.arg)
        elif before == ["LOAD_FAST", "LOAD_CONST", "BINARY_OP"] and instrs[index - 1].arg in _STEPS:
            found += [instr.arg] if instrs[index - 3].arg == instr.arg else []
    return found
