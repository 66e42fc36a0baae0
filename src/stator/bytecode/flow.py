"""The raw control flow of a code object: simple instructions, what follows each, what handles their exceptions."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from types import CodeType

from .assemble import Position
from .by_code import ByCode
from .decode import Piece, exception_table, pieces
from .versions import common, current

_ENDS = frozenset(
    {"RETURN_VALUE", "RERAISE", "RAISE_VARARGS", "JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"}
)
_SKIPPED = (common.skip, common.kw_names)

RawHandler = tuple[int, int, bool]
"""Piece, stack depth, whether the lasti is pushed."""


class Flow:
    """Everything is by the position in `pieces`."""

    __slots__ = ("entries", "handlers", "indexes", "pieces", "positions", "targets")

    def __init__(self, code: CodeType) -> None:
        self.pieces: list[Piece] = list(pieces(code))
        positions = list(code.co_positions())
        self.positions: list[Position] = [positions[piece.offset >> 1] for piece in self.pieces]
        at = {}
        for number in range(len(self.pieces) - 1, -1, -1):
            at[self.pieces[number].start] = number
        self.targets: list[int | None] = [_target(piece, at) for piece in self.pieces]
        self.handlers = self._handlers(code, at)
        self.indexes: list[int] = []
        """The canonical instruction a piece is, or -1."""
        self.entries: list[int] = []
        """Where to enter in order to go on at a canonical instruction."""
        self._number()

    def _handlers(self, code: CodeType, at: dict[int, int]) -> list[RawHandler | None]:
        by_unit: dict[int, RawHandler] = {}
        for row in exception_table(code):
            handler = (at[row.target], row.depth, row.push_lasti)
            by_unit.update(dict.fromkeys(range(row.start, row.end, 2), handler))
        return [by_unit.get(piece.offset) for piece in self.pieces]

    def _number(self) -> None:
        entry: int | None = None
        for number, piece in enumerate(self.pieces):
            if piece.detached:
                self.indexes.append(-1)
                continue
            # What is skipped belongs to what follows: a KW_NAMES to its call, a RESUME to the code after the yield.
            entry = number if entry is None else entry
            if piece.raw not in current.JUMPS and current.CONVERT[piece.raw] in _SKIPPED:
                self.indexes.append(-1)
                continue
            self.indexes.append(len(self.entries))
            self.entries.append(entry)
            entry = None

    def reachable(self, roots: Iterable[int], without: Container[int] = ()) -> set[int]:
        """Every piece that may run after one of the roots, and those that may after it, but for some."""
        found: set[int] = set()
        pending = list(roots)
        while pending:
            number = pending.pop()
            if number not in found and number not in without:
                found.add(number)
                pending += self._next(number)
        return found

    def _next(self, number: int) -> Iterator[int]:
        """What may run right after a piece."""
        target, handler = self.targets[number], self.handlers[number]
        if target is not None:
            yield target
        if handler is not None:
            yield handler[0]
        if self.pieces[number].raw not in _ENDS:
            yield number + 1

    def repeats(self, index: int) -> bool:
        """Whether the canonical instruction may come again with no iterator advanced in between: it is in a `while`."""
        number = self.indexes.index(index)
        advancing = {n for n, piece in enumerate(self.pieces) if piece.raw == "FOR_ITER"}
        return number in self.reachable(self._next(number), advancing)


def _target(piece: Piece, at: dict[int, int]) -> int | None:
    jump = current.JUMPS.get(piece.raw)
    return None if jump is None else at[piece.end + 2 * jump[1] * piece.arg]


_flows = ByCode[Flow]()


def flow(code: CodeType) -> Flow:
    """The control flow of a code object, made once as long as it lives."""
    return _flows.of(code, Flow)
