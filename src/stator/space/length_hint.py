"""`PyObject_LengthHint`: how many items an iterable says it has, asked by whatever makes room for them."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import TYPE_CHECKING

from stator.space.attributes import MISSING
from stator.space.value import Constant, Raised, Value

if TYPE_CHECKING:
    from stator.space.space import Space

_C_SLOTS = (types.WrapperDescriptorType, types.MethodDescriptorType, type(MISSING))


def length_hint(space: Space, value: Value, default: Value) -> Value:
    """`__len__`, else `__length_hint__`, else the default; a TypeError in either is "not known"."""
    try:
        if space.special(value, "__len__") is not None:
            return space.len(value)
    except Raised as e:
        if not e.matches(TypeError):
            raise
    slot = space.special(value, "__length_hint__")
    if slot is None:
        return default
    try:
        hint = space.call(slot, [value], {}).force()
    except Raised as e:
        if not e.matches(TypeError):
            raise
        return default
    if space.is_not_implemented(hint):
        return default
    if not hint.isa(int):
        raise space.error(TypeError, f"__length_hint__ must be an integer, not {hint.type_name(space)}")
    if space.truth(space.compare("<", hint, Constant(0))):
        raise space.error(ValueError, "__length_hint__() should return >= 0")
    return hint


def iterate_sized(space: Space, iterable: Value) -> Iterator[Value]:
    """The items, after asking the iterable how many they are where that runs code of the program's."""
    hosts = [space.host_lookup(iterable.cls, name) for name in ("__len__", "__length_hint__")]
    if all(type(host) in _C_SLOTS for host in hosts):
        yield from space.iterate(iterable)
        return
    iterator = space.iter(iterable)
    length_hint(space, iterable, Constant(0))
    while (item := space.next(iterator)) is not None:
        yield item
