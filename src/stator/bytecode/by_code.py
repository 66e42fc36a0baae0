"""What is known of code objects, as long as these live."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any, Generic, TypeVar

from stator._core import CodePolicy, set_code_policy

T = TypeVar("T")


class ByCode(Generic[T]):
    """Something kept for each code object, by identity, as equal ones may have other files and qualified names.

    What is kept must not hold the code object itself: neither would ever go.
    """

    __slots__ = ("__weakref__", "_codes", "_known")

    def __init__(self) -> None:
        self._known: dict[int, T] = {}
        self._codes: dict[int, _Ref] = {}

    def __getitem__(self, code: CodeType) -> T:
        """What is known of the code object; KeyError if nothing is."""
        return self._known[id(code)]

    def __contains__(self, code: CodeType) -> bool:
        return id(code) in self._known

    def __len__(self) -> int:
        return len(self._known)

    def of(self, code: CodeType, make: Callable[[CodeType], T]) -> T:
        """What is known of the code object, made where nothing is yet."""
        found = self._known.get(id(code))
        return self.keep(code, make(code)) if found is None else found

    def find(self, code: CodeType) -> T | None:
        """What is known of the code object, if anything is."""
        return self._known.get(id(code))

    def keep(self, code: CodeType, known: T) -> T:
        """Remember this of the code object."""
        if id(code) not in self._codes:
            self._codes[id(code)] = _Ref(code, self)
        self._known[id(code)] = known
        return known

    def codes(self) -> list[CodeType]:
        """The code objects that something is known of."""
        return [code for ref in list(self._codes.values()) if (code := ref()) is not None]

    def clear(self) -> None:
        """Forget everything."""
        self._known.clear()
        self._codes.clear()


class _Ref(weakref.ref[CodeType]):
    """Held by its table, and of no effect when that is gone: a code object may outlive many tables."""

    __slots__ = ("key", "table")
    key: int
    table: weakref.ref[ByCode[Any]]

    def __new__(cls, code: CodeType, table: ByCode[Any]) -> _Ref:
        self = super().__new__(cls, code, _forget)
        self.key, self.table = id(code), weakref.ref(table)
        return self

    def __init__(self, code: CodeType, table: ByCode[Any]) -> None:
        super().__init__(code, _forget)  # type: ignore[call-arg]


def _forget(ref: _Ref) -> None:
    table = ref.table()
    if table is not None and table._codes.get(ref.key) is ref:
        del table._codes[ref.key], table._known[ref.key]


# A code object may end while traced code runs.
set_code_policy(_forget.__code__, CodePolicy.RUN_RECURSIVELY)
