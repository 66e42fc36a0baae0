"""What is known of code objects, as long as these live."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import CodeType
from typing import Generic, TypeVar

T = TypeVar("T")


class ByCode(Generic[T]):
    """Something kept for each code object, by identity, as equal ones may have other files and qualified names."""

    def __init__(self) -> None:
        self._known: dict[int, T] = {}

    def __getitem__(self, code: CodeType) -> T:
        """What is known of the code object; KeyError if nothing is."""
        return self._known[id(code)]

    def of(self, code: CodeType, make: Callable[[CodeType], T]) -> T:
        """What is known of the code object, made where nothing is yet."""
        found = self._known.get(id(code))
        return self.keep(code, make(code)) if found is None else found

    def find(self, code: CodeType) -> T | None:
        """What is known of the code object, if anything is."""
        return self._known.get(id(code))

    def keep(self, code: CodeType, known: T) -> T:
        """Remember this of the code object."""
        if id(code) not in self._known:
            weakref.finalize(code, self._known.pop, id(code), None).atexit = False
        self._known[id(code)] = known
        return known
