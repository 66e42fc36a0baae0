"""What an abstract base class remembers of the classes it was asked about, as the C half of `abc` keeps it.

`_abc._abc_subclasscheck` looks in the class's memory, calls `__subclasshook__` where it finds nothing, and remembers
the answer. It knows the class by its `_abc_impl` alone, so that an object with this `_abc_impl` and another hook can be
asked, and told.
"""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
from typing import Any

from stator.guards.raw import type_lookup
from stator.models.classes.bookkeeping import Bookkeeping

__all__ = ["known", "remember", "remembers"]


class _Unknown(Exception):
    """The hook is asked: nothing is remembered."""


class _Asking:
    """In place of the class: looks in its memory."""

    __slots__ = ("_abc_impl",)

    def __init__(self, classes: type) -> None:
        self._abc_impl = type_lookup(classes, "_abc_impl")

    def __subclasshook__(self, cls: type) -> bool:  # type: ignore[override]
        raise _Unknown


class _Telling(_Asking):
    """In place of the class: its hook gives the answer that is to be remembered."""

    __slots__ = ("answer",)

    def __init__(self, classes: type, answer: bool) -> None:
        super().__init__(classes)
        self.answer = answer

    def __subclasshook__(self, cls: type) -> bool:  # type: ignore[override]
        return self.answer


def known(classes: type, cls: type) -> bool | None:
    """Whether `cls` is remembered as a subclass, or as none; None where it is not remembered."""
    try:
        return bool(_abc._abc_subclasscheck(_Asking(classes), cls))
    except _Unknown:
        return None


class _Remember(Bookkeeping):
    def __call__(self, classes: type, cls: type, answer: bool) -> None:
        _abc._abc_subclasscheck(_Telling(classes, answer), cls)


#: remembers an answer that was found while tracing
remember = _Remember()


def remembers(answer: bool | None) -> Any:
    """The test `(classes, cls) -> bool` that this is what is remembered."""
    return _TESTS[answer]


class _Is:
    """The test for one of the answers."""

    def __init__(self, answer: bool | None) -> None:
        self.answer = answer

    def __call__(self, classes: type, cls: type) -> bool:
        return known(classes, cls) is self.answer


_TESTS: dict[bool | None, Any] = {answer: _Is(answer) for answer in (True, False, None)}
