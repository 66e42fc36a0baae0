"""Hashable stand-ins for traced values, so that host dicts and sets keep CPython's own algorithm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.guards.raw import type_name
from stator.objects.identities import used_as_key
from stator.objects.value import NotKnown, Unsupported, Value

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.residual.writer import Writer


class IdentityKey:
    """Key of a value whose class hashes and compares by identity."""

    __slots__ = ("anchor",)

    def __init__(self, anchor: Any) -> None:
        self.anchor = anchor

    def __hash__(self) -> int:
        return id(self.anchor) >> 4

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.anchor is self.anchor


class IdKey:
    """Key of the id of an object: equal to the id of the same object; the number itself is not looked at."""

    __slots__ = ("anchor", "value")

    def __init__(self, value: Value, anchor: Any) -> None:
        self.value = value
        self.anchor = anchor

    def __hash__(self) -> int:
        # As the number itself: a plain int that the program got hold of before may be this id.
        return hash(id(self.anchor))

    def __eq__(self, other: object) -> bool:
        if type(other) is int and other == id(self.anchor) and not isinstance(self.anchor, Value):
            raise Unsupported(errors.UnsupportedCCall("id of an object, compared with a number"))
        return isinstance(other, IdKey) and other.anchor is self.anchor


#: types of keys that an id may be, or be part of
OF_IDS = frozenset({IdKey, tuple})


def grounded(space: Space, key: Any) -> Any:
    """The key as an existing dict or set knows it: ids as the numbers they are, under guards."""
    if type(key) is IdKey:
        try:
            return key.value.as_host(space)
        except NotKnown:
            return key  # of an object made by the trace: no existing container has it
    return tuple([grounded(space, part) for part in key]) if type(key) is tuple else key


class TracedKey:
    """Key of a value with its own `__hash__` or `__eq__`: the host dict calls the traced program's methods."""

    __slots__ = ("hash", "space", "value")

    def __init__(self, space: Space, value: Value) -> None:
        self.space = space
        self.value = value
        try:
            self.hash = int(space.hash(value).as_host(space))
        except NotKnown:
            # `object.__hash__`: as the key of an object that compares by identity.
            self.hash = hash(IdentityKey(space.identity(value)))

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        mine = self.space.identity(self.value)
        if isinstance(other, TracedKey):
            if mine is other.space.identity(other.value):
                return True
            theirs = other.value
        elif isinstance(other, IdentityKey):
            if not isinstance(other.anchor, Value):
                return False
            theirs = other.anchor
        else:
            theirs = self.space.fresh(other)
        return self.space.truth(self.space.compare("==", self.value, theirs))


def traced_key(space: Space, value: Value) -> Any:
    """The key of a value that is not simply known; raises Raised(TypeError) for an unhashable one."""
    cls = value.cls
    hash_slot = space.host_lookup(cls, "__hash__")
    if hash_slot is object.__hash__ and space.host_lookup(cls, "__eq__") is object.__eq__:
        used_as_key(space, value)
        return IdentityKey(space.identity(value))
    if hash_slot is None:
        raise space.error(TypeError, f"unhashable type: '{type_name(cls)}'")
    return TracedKey(space, value)


def leaves(keys: Iterable[Any]) -> Iterator[Any]:
    """What the stand-ins consist of."""
    left, seen = list(keys), set[int]()
    while left:
        key = left.pop()
        if type(key) is tuple or type(key) is frozenset:
            if id(key) not in seen:  # sets of sets hold one over and over
                seen.add(id(key))
                left += key
        else:
            yield key


def check_hashed(writer: Writer, keys: Iterable[Any]) -> None:
    """Refuse keys that cannot be hashed yet: a class that refers to what they are in gets its methods later."""
    made = writer.trace.fresh_classes
    for key in leaves(keys):
        if type(key) is TracedKey:
            classes = [made[cls] for cls in key.value.cls.__mro__ if cls in made]
            if any(map(writer.is_unfinished, classes)):
                raise Unsupported(errors.NotReconstructible("what the class of its keys refers to"))
