"""Contexts of wrappers (what `__tensor_flatten__` gives beside the names) that repeat the wrapper's own sizes.

A DTensor's context tells its sizes and strides. Where these are symbols of the trace, a later wrapper need not have the
numbers of the first one, but its own. Whether `__tensor_unflatten__` takes them from its arguments, as it has to, or
from the context, the fake wrapper shows: in the former case its context has the symbols.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from stator.pytorch.fake.metadata import is_symbol, same_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stator.pytorch.types import Fake, Host, Number

__all__ = ["agrees", "expected"]


class _Own(NamedTuple):
    """Stands for a number of the wrapper's own."""

    is_stride: bool
    dim: int

    def of(self, wrapper: Host) -> object:
        return (wrapper.stride() if self.is_stride else wrapper.shape)[self.dim]


class _Parts(NamedTuple):
    """A sequence of the class, in which are such numbers."""

    cls: type
    items: list[object]


def expected(context: object, shown: object, seen: Fake) -> object:
    """What the contexts of later wrappers are to agree with.

    Args:
        context: that of the wrapper.
        shown: that of its fake; the same where there are no symbols.
        seen: the fake.
    """
    if is_symbol(shown):
        return _own(shown, seen) or context
    if isinstance(context, tuple | list) and isinstance(shown, tuple | list) and len(context) == len(shown):
        items = [expected(item, told, seen) for item, told in zip(context, shown, strict=True)]
        if any(isinstance(item, _Own | _Parts) for item in items):
            return _Parts(type(context), items)
    return context


def _own(number: Number, seen: Fake) -> _Own | None:
    """Which of the wrapper's own numbers a symbol is; the first, if it is several."""
    numbers: Iterable[tuple[bool, Iterable[Number]]] = ((False, seen.shape), (True, seen.stride()))
    found = ((is_stride, dim) for is_stride, own in numbers for dim, n in enumerate(own) if same_numbers(n, number))
    return next((_Own(*place) for place in found), None)


def agrees(wanted: object, context: object, wrapper: Host) -> bool:
    """Whether a wrapper's context is as expected."""
    if isinstance(wanted, _Own):
        return bool(context == wanted.of(wrapper))
    if not isinstance(wanted, _Parts):
        return bool(context == wanted)
    if not isinstance(context, tuple | list) or type(context) is not wanted.cls or len(context) != len(wanted.items):
        return False
    return all(agrees(item, told, wrapper) for item, told in zip(wanted.items, context, strict=True))
