"""Hashes that CPython mixes from those of an object's parts: tuples, slices."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from stator import errors
from stator.space.host_types import Host
from stator.space.space import Space
from stator.space.value import Constant, NotKnown, Unsupported, Value

__all__ = ["hash_of_parts"]


class _Hashed:
    """An object with a given hash, so that CPython mixes the hashes of the parts."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __hash__(self) -> int:
        return self.number


def hash_of_parts(space: Space, name: str, make: Callable[[list[Host]], Host], parts: Iterable[Value]) -> Value:
    """The hash of what `make` makes of the parts, each of which is hashed once, in this order."""
    try:
        hashes = [_Hashed(int(space.hash(part).as_host(space))) for part in parts]
    except NotKnown:
        raise Unsupported(errors.UnsupportedSlot(name, "hash that depends on addresses")) from None
    return Constant(hash(make(hashes)))
