"""How many rounds of the program's loops a trace has, as each round is executed symbolically."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stator.interp.break_report import users_line
from stator.interp.policy import is_library

if TYPE_CHECKING:
    from stator.bytecode.decode import Instr
    from stator.space.interfaces import Frame, Trace

__all__ = ["Loops", "Unrolled"]


class Unrolled(NamedTuple):
    """What a loop has become: how often it has gone round, and the operations of all rounds together."""

    rounds: int
    operations: int


class _Loop:
    """A loop of the program's: "file.py:line", and how many operations the graph had as it began, and has now."""

    __slots__ = ("begun", "ended", "place", "rounds")

    def __init__(self, place: str, begun: int) -> None:
        self.place = place
        self.begun = self.ended = begun
        self.rounds = 0


class Loops:
    """The loops of one trace."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        #: by code and instruction; None: a library's
        self._found: dict[tuple[int, int], _Loop | None] = {}

    def asked(self, frame: Frame, instr: Instr, is_over: bool) -> None:
        """A loop has asked for its next item, and perhaps got none."""
        key = id(frame.code), instr.index
        if key not in self._found:
            self._found[key] = self._met(frame)
        loop = self._found[key]
        if loop is not None:
            loop.ended = self._operations()
            loop.rounds += not is_over

    def _met(self, frame: Frame) -> _Loop | None:
        at = None if is_library(frame.code) else users_line(frame)
        return None if at is None else _Loop(f"{at[0].co_filename}:{at[1]}", self._operations())

    def _operations(self) -> int:
        recorder = self._trace.recorder
        return 0 if recorder is None else recorder.operations

    def all(self) -> dict[str, Unrolled]:
        """What they have become, by "file.py:line"; of several in one line that which has made most."""
        loops = sorted((loop for loop in list(self._found.values()) if loop is not None), key=_made)
        return {loop.place: Unrolled(loop.rounds, _made(loop)) for loop in loops}


def _made(loop: _Loop) -> int:
    return loop.ended - loop.begun
