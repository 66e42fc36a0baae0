"""Guards as plain data: what was assumed, with the program's names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import overload

__all__ = ["GuardRecord", "GuardRecords"]


@dataclasses.dataclass(frozen=True, slots=True)
class GuardRecord:
    """What was assumed.

    Attributes:
        text: the assumption, with the program's names.
        where: "file.py:line" that depends on it; "" where no single line does.
        cost_ns: what its check takes at a call in nanoseconds, as measured when it was made.
    """

    text: str
    where: str
    cost_ns: int


@dataclasses.dataclass(frozen=True, slots=True)
class GuardRecords(Sequence[GuardRecord]):
    """The `GuardRecord`s of a frame, kept in columns.

    There are thousands: an object for each takes as long to make, and to be walked over by the garbage collector, as
    its text takes to be written.

    Attributes:
        texts, places, costs: `text`, `where` and `cost_ns` of each guard.
    """

    texts: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    costs: tuple[int, ...] = ()

    def __len__(self) -> int:
        return len(self.texts)

    def __iter__(self) -> Iterator[GuardRecord]:
        return map(GuardRecord, self.texts, self.places, self.costs)

    @overload
    def __getitem__(self, index: int) -> GuardRecord: ...
    @overload
    def __getitem__(self, index: slice) -> GuardRecords: ...
    def __getitem__(self, index: int | slice) -> GuardRecord | GuardRecords:
        """One guard, or some."""
        if isinstance(index, slice):
            return GuardRecords(self.texts[index], self.places[index], self.costs[index])
        return GuardRecord(self.texts[index], self.places[index], self.costs[index])
