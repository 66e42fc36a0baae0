"""Keys that stand for traced values, so that host dicts and sets keep CPython's own algorithm."""

from __future__ import annotations

import enum
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from stator import errors
from stator.space.host_types import Host
from stator.space.identity.aliasing import used_as_key
from stator.space.value import NotKnown, Unsupported, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Trace
    from stator.space.space import Space


PLAIN = frozenset({str, int, float, complex, bool, bytes, type(None), type(...)})
_LASTING = (type, types.BuiltinFunctionType, types.ModuleType, enum.Enum)


class IdentityKey:
    """Key of a value whose class hashes and compares by identity."""

    __slots__ = ("anchor",)

    def __init__(self, anchor: Host) -> None:
        self.anchor = anchor

    def __hash__(self) -> int:
        return id(self.anchor) >> 4

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.anchor is self.anchor


class IdKey:
    """Key of the id of an object: equal to the id of the same object; the number itself is not looked at."""

    __slots__ = ("anchor", "value")

    def __init__(self, value: Value, anchor: Host) -> None:
        self.value = value
        self.anchor = anchor

    def __hash__(self) -> int:
        # As the number itself: a plain int that the program got hold of before may be this id.
        return hash(id(self.anchor))

    def __eq__(self, other: object) -> bool:
        if type(other) is int and other == id(self.anchor) and not isinstance(self.anchor, Value):
            raise Unsupported(errors.UnsupportedUse("id", "of an object, compared with a number"))
        return isinstance(other, IdKey) and other.anchor is self.anchor


class _Unlike:
    """Of which types of `UNLIKE` there are keys."""

    def __init__(self, trace: Trace) -> None:
        self.types: set[type] = set()


def note_unlike(space: Space, cls: type) -> None:
    """A number of such a type is a key."""
    found = space.trace.extension(_Unlike).types
    found.add(cls)
    if len(found) > 1:
        raise Unsupported(errors.UnsupportedSlot(cls.__name__, "comparison, as a key, with a float"))


def grounded(space: Space, key: Host) -> Host:
    """The key as an existing dict or set knows it: ids as the numbers they are, under guards."""
    ground = _GROUNDED.get(type(key))
    return key if ground is None else ground(space, key)


def _grounded_id(space: Space, key: IdKey) -> Host:
    try:
        return key.value.as_host(space)
    except NotKnown:
        return key  # of an object made by the trace: no existing container has it


#: the types of keys that an id may be, or be part of
_GROUNDED: dict[type, Callable[[Space, Host], Host]] = {
    IdKey: _grounded_id,
    tuple: lambda space, key: tuple([grounded(space, part) for part in key]),
    slice: lambda space, key: slice(*[grounded(space, part) for part in _members(key)]),
}


def _members(key: slice) -> tuple[Host, Host, Host]:
    """What the hash of a slice is made of: slices are keys from CPython 3.12 on."""
    return key.start, key.stop, key.step


class RefKey:
    """Key of a weak reference: it hashes and compares as its referent does."""

    __slots__ = ("referent",)

    def __init__(self, referent: Host) -> None:
        self.referent = referent

    def __hash__(self) -> int:
        return hash(self.referent)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RefKey) and bool(self.referent == other.referent)


class TracedKey:
    """Key of a value with its own `__hash__` or `__eq__`: the host dict calls the traced program's methods.

    `hashes_alike` says whether the value will have the same hash at each run; it is not computed for keys whose hash
    an existing dict or set has stored.
    """

    __slots__ = ("_hash", "hashes_alike", "space", "value")

    def __init__(self, space: Space, value: Value) -> None:
        self.space = space
        self.value = value
        self._hash: int | None = None
        self.hashes_alike = True

    def __hash__(self) -> int:
        if self._hash is None:
            try:
                self._hash = int(self.space.hash(self.value).as_host(self.space))
            except NotKnown:
                # `object.__hash__`: as the key of an object that compares by identity.
                self._hash = hash(IdentityKey(self.space.identity(self.value)))
                self.hashes_alike = False
        return self._hash

    def hash_as(self, stored: int) -> None:
        """Have this hash, which the program's method has given before."""
        self._hash = stored

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


def traced_key(space: Space, value: Value) -> Host:
    """The key of a value that is not simply known; raises Raised(TypeError) for an unhashable one."""
    cls = value.cls
    hash_slot = space.host_lookup(cls, "__hash__")
    if hash_slot is object.__hash__ and space.host_lookup(cls, "__eq__") is object.__eq__:
        used_as_key(space, value)
        return IdentityKey(space.identity(value))
    if hash_slot is None:
        raise space.error(TypeError, f"unhashable type: '{space.type_name(cls)}'")
    return TracedKey(space, value)


#: types of keys that consist of others, and what they consist of
_COMPOSITE: dict[type, Callable[[Host], Iterable[Host]]] = {
    tuple: iter,
    frozenset: iter,
    slice: _members,
    RefKey: lambda key: (key.referent,),
}
_CALLING = frozenset({TracedKey, *_COMPOSITE})


def stored_key(space: Space, value: Value, stored: int) -> Host:
    """The key of a value with which an existing dict or set has stored this hash: its own is not asked for again."""
    key = value.force().key(space)
    traced = key.referent if type(key) is RefKey else key
    if type(traced) is TracedKey:
        traced.hash_as(stored)
    return key


def runs_methods(key: Host) -> bool:
    """Whether hashing or comparing what the key stands for may run methods of the traced program."""
    return type(key) in _CALLING and any(True for _ in _traced(key))


def is_plain(host: Host) -> bool:
    """Whether a guard can compare the key by value."""
    kind = type(host)
    if kind in PLAIN:
        return bool(host == host)  # a NaN is found by its identity
    return kind is tuple and all(is_plain(item) for item in host)


def is_lasting(host: Host) -> bool:
    """Whether the key is an object that a guard may name by identity: it lives as long as the program does."""
    return issubclass(type(host), _LASTING)  # isinstance would ask the object's own __class__


def hashes_alike(key: Host) -> bool:
    """Whether the leaf of a key hashes as the real object does, in every call."""
    if type(key) is IdentityKey:
        return is_lasting(key.anchor) and hash(key) == object.__hash__(key.anchor)
    return key.hashes_alike if type(key) is TracedKey else is_plain(key) or is_lasting(key)


def may_be_hashed(key: Host) -> bool:
    """Whether generated code may hash what the key stands for: no method of the program's runs again."""
    return not any(traced.hashes_alike for traced in _traced(key))


def written_hash(key: Host, stored: int) -> int | None:
    """The hash that generated code gives a key; None where it may ask for it."""
    if may_be_hashed(key):
        return None
    if all(map(hashes_alike, leaves([key]))):
        return stored
    raise Unsupported(errors.NotReconstructible("a key that holds others, some of which have methods to hash them"))


def leaves(keys: Iterable[Host]) -> Iterator[Host]:
    """What the keys consist of."""
    left, seen = list(keys), set[int]()
    while left:
        key = left.pop()
        members = _COMPOSITE.get(type(key))
        if members is None:
            yield key
        elif id(key) not in seen:  # sets of sets hold one over and over
            seen.add(id(key))
            left += members(key)


def _traced(key: Host) -> Iterator[TracedKey]:
    """The keys within the key that call methods of the traced program."""
    return (leaf for leaf in leaves([key]) if isinstance(leaf, TracedKey))
