"""Which variables of a continuation are numbers that will be others the next time: they number the rounds of a loop
that it goes on in, or hold what has been drawn. And which get the items of such a loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType

from .by_code import ByCode
from .continuation import entered_at
from .decode import Decoded, decode

__all__ = ["counters", "loop_variables", "note_varying"]

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
    return frozenset(name for decoded, begin, end in _loops(code) for name in _counted(decoded, begin, end))


def _loops(code: CodeType) -> Iterator[tuple[Decoded, int, int]]:
    """The code that a continuation is of, with the instructions at which a loop around its place begins and ends."""
    place = entered_at(code)
    if place is None:
        return
    decoded, entry = decode(place[0]), place[1]
    for instr in decoded.instrs:
        if isinstance(instr.arg, int) and "JUMP" in instr.op and instr.arg <= entry <= instr.index:
            yield decoded, instr.arg, instr.index


def loop_variables(code: CodeType) -> tuple[str, ...]:
    """What `for` binds in the one loop that the continuation goes on in; nothing if there are several, or none."""
    begins = {begin: decoded.instrs for decoded, begin, _ in _loops(code) if decoded.instrs[begin].op == "FOR_ITER"}
    if len(begins) != 1:
        return ()
    [(begin, instrs)] = begins.items()
    count, first = (instrs[begin + 1].arg, 2) if instrs[begin + 1].op == "UNPACK_SEQUENCE" else (1, 1)
    stores = instrs[begin + first : begin + first + count]
    return tuple(store.arg for store in stores) if all(store.op == "STORE_FAST" for store in stores) else ()


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
