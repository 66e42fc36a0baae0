"""Tests of guards that are made from values: the same values give the same object."""

from __future__ import annotations

import weakref
from collections.abc import Hashable
from typing import Any, Self

__all__ = ["Interned"]

_made: weakref.WeakValueDictionary[tuple[object, ...], Any] = weakref.WeakValueDictionary()


class Interned:
    """A callable for a `Predicate` or a `CallSource`, which compare and share by the identity of what they call.

    Its values are hashable; equal ones of the same types are one object as long as a guard holds it.

    >>> class Above(Interned):
    ...     def __init__(self, bound): self.bound = bound
    ...     def __call__(self, number): return number > self.bound
    >>> Above(3) is Above(3), Above(3) is Above(3.0)
    (True, False)
    """

    _values: tuple[Hashable, ...]

    def __new__(cls, *values: Hashable) -> Self:
        key = (cls, *((type(value), value) for value in values))
        made = _made.get(key)
        if made is None:
            made = object.__new__(cls)
            made._values = values
            _made[key] = made
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._values
