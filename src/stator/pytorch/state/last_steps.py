"""What a program does last may as well be done when its graph has run: nothing that it computes depends on it.

with torch.inference_mode():
    return self.decode(x)          # breaks inside; the mode ends where the function returns
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stator.space.interfaces import Frame, Trace

__all__ = ["only_returns"]

#: instructions that show nothing of the state that the program is in
_SILENT = frozenset({"POP_TOP", "LOAD_CONST", "LOAD_FAST", "STORE_FAST", "COPY", "SWAP", "JUMP"})


def only_returns(trace: Trace) -> bool:
    """Whether all that is left to the program is to give a result that it has."""
    return all(map(_returns, trace.running()))


def _returns(frame: Frame) -> bool:
    at = frame.index
    for _ in frame.instrs[at:]:  # at most: a loop does not return
        instr = frame.instrs[at]
        if instr.op == "RETURN_VALUE":
            return frame.generator is None
        if instr.op not in _SILENT:
            return False
        at = instr.arg if instr.op == "JUMP" else at + 1
    return False
