"""Equality as guards mean it: the same type and the same value, where ``==`` alone would take 1 for True."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from typing import Any

__all__ = ["plain_key", "same_value"]


def same_value(a: object, b: object) -> bool:
    """Exactly the same type and an indistinguishable value; an exception from a foreign ``__eq__`` means no."""
    kind = type(b)
    if type(a) is not kind:
        return False
    compare = _COMPARE.get(kind)
    if a is b:
        return True
    if compare is not None:
        return compare(a, b)
    try:
        return bool(a == b)
    except Exception:
        return False


def _same_bits(a: float, b: float) -> bool:
    return struct.pack("d", a) == struct.pack("d", b)


def _same_complex(a: complex, b: complex) -> bool:
    return _same_bits(a.real, b.real) and _same_bits(a.imag, b.imag)


def _same_dict(a: dict[object, object], b: dict[object, object]) -> bool:
    return _same_items(list(a.items()), list(b.items()))


def _same_items(a: Sequence[object], b: Sequence[object]) -> bool:
    return len(a) == len(b) and all(map(same_value, a, b))


def _same_set(a: frozenset[object], b: frozenset[object]) -> bool:
    return len(a) == len(b) and all(any(same_value(x, y) for y in a) for x in b)


def _same_slice(a: slice | range, b: slice | range) -> bool:
    return same_value(a.start, b.start) and same_value(a.stop, b.stop) and same_value(a.step, b.step)


def _equal(a: object, b: object) -> bool:
    return bool(a == b)


_COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    int: _equal,
    str: _equal,
    bytes: _equal,
    bool: _equal,
    float: _same_bits,
    complex: _same_complex,
    tuple: _same_items,
    list: _same_items,
    dict: _same_dict,
    frozenset: _same_set,
    slice: _same_slice,
    range: _same_slice,
}


def plain_key(value: object) -> tuple[object, ...]:
    """A hashable key, equal for two values only if ``same_value`` holds; identity where nothing better is known."""
    kind = type(value)
    make = _KEYS.get(kind)
    return (kind, id(value)) if make is None else (kind, make(value))


def _items_key(value: Iterable[object]) -> object:
    return tuple(map(plain_key, value))


_KEYS: dict[type, Callable[[Any], object]] = {
    int: lambda v: v,
    str: lambda v: v,
    bytes: lambda v: v,
    bool: lambda v: v,
    float: lambda v: struct.pack("d", v),
    complex: lambda v: struct.pack("dd", v.real, v.imag),
    tuple: _items_key,
    frozenset: lambda v: frozenset(map(plain_key, v)),
    slice: lambda v: _items_key((v.start, v.stop, v.step)),
    range: lambda v: _items_key((v.start, v.stop, v.step)),
}
