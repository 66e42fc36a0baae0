"""collections: what its C half does for its Python half."""

from __future__ import annotations

import collections
from typing import Any

from stator.models.containers.dict_ import DictValue
from stator.space.protocol import NONE, builtin
from stator.space.space import Space
from stator.space.value import Constant, Value

_ZERO, _ONE = Constant(0), Constant(1)
# Private, yet the very object that Counter.update calls.
_count_elements: Any = collections._count_elements  # type: ignore[attr-defined]


@builtin(_count_elements)
def count_elements(space: Space, mapping: Value, iterable: Value, /) -> Value:
    """Count the elements in the mapping: directly where neither `get` nor `__setitem__` of dict is overridden."""
    mapping = mapping.force()
    iterator = space.iter(iterable)
    get, put = space.host_lookup(mapping.cls, "get"), space.host_lookup(mapping.cls, "__setitem__")
    if isinstance(mapping, DictValue) and get is dict.get and put is dict.__setitem__:
        while (key := space.next(iterator)) is not None:
            found = mapping.find(space, key)
            mapping.tp_setitem(space, key, _ONE if found is None else space.binary("+", found, _ONE))
        return NONE
    getter = space.getattr(mapping, "get")
    while (key := space.next(iterator)) is not None:
        found = space.call(getter, [key, _ZERO], {})
        space.setitem(mapping, key, space.binary("+", found, _ONE))
    return NONE
