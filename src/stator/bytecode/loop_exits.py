"""Whether a branch decides that a loop of the program ends: `while cond`, or an `if` with `break` or `return` in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .stack import reached, successors

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
    first, last = around
    outside = {instr.index for instr in decoded.instrs if not first <= instr.index <= last}
    goes_on = [first in reached(decoded, side, outside) for side in sides]
    return goes_on.count(True) == 1


def _loops(decoded: Decoded) -> list[tuple[int, int]]:
    """First and last instruction of each: where something jumps back to, and the jump."""
    return [(to, instr.index) for instr in decoded.instrs for to, _ in successors(instr) if to <= instr.index]
