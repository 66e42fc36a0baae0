"""Whether a branch decides that a loop of the program ends: `while cond`, or an `if` with `break` or `return` in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .stack import successors

if TYPE_CHECKING:
    from .decode import Decoded

__all__ = ["ends_loop"]


def ends_loop(decoded: Decoded, branch: int, sides: tuple[int, int]) -> bool:
    """Whether one side of a branch goes on with the loop that the branch is in, and the other one leaves it.

    Args:
        branch: the index of the branch.
        sides: where it goes if it is true, and if it is false.
    """
    loops = _loops(decoded)
    # CPython has the condition of a `while` twice: before the loop, and at its end.
    for first, last in loops:
        if first in sides and branch < first and decoded.instrs[last].line == decoded.instrs[branch].line:
            return True
    around = max((loop for loop in loops if loop[0] <= branch <= loop[1]), default=None)
    if around is None:
        return False
    goes_on = [_comes_by(decoded, side, around) for side in sides]
    return goes_on.count(True) == 1


def _loops(decoded: Decoded) -> list[tuple[int, int]]:
    """First and last instruction of each: where something jumps back to, and the jump."""
    return [(to, instr.index) for instr in decoded.instrs for to, _ in successors(instr) if to <= instr.index]


def _comes_by(decoded: Decoded, start: int, loop: tuple[int, int]) -> bool:
    """Whether what begins at an instruction comes by the loop's beginning, without leaving the loop before."""
    first, last = loop
    seen, pending = set[int](), [start]
    while pending:
        index = pending.pop()
        if index == first:
            return True
        if index not in seen and first <= index <= last:
            seen.add(index)
            pending += [to for to, _ in successors(decoded.instrs[index])]
    return False
