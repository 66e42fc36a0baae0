"""The contents of a traced set: a host set of hash keys, on which CPython's own algorithm and order work."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import NamedTuple

from stator import errors
from stator._core import fill_table, set_finger, set_layout, set_table
from stator.guards.base import show
from stator.guards.guard import Equals, Length
from stator.guards.interned import Interned
from stator.guards.source import CallSource, ItemSource, Source
from stator.space.host_types import Host
from stator.space.identity.keys import (
    grounded,
    hashes_alike,
    is_lasting,
    is_plain,
    leaves,
    may_be_hashed,
    runs_methods,
    stored_key,
)
from stator.space.identity.varying_keys import SymbolKey, settled, told_apart
from stator.space.space import Space
from stator.space.value import Unsupported, Value

#: what an error for an unhashable item calls it
ELEMENT = "set element"

# -- what guards call ----------------------------------------------------------------------------------------------


def layout(host: Host) -> tuple[Host, ...]:
    """The places of a set's table, then its elements in order: all that operations on it depend on, but its finger."""
    return set_layout(host)


def places(host: Host) -> bytes:
    """The places of a set's table: free, taken, or left by a deleted element."""
    return set_table(host)[0]


def hashes(host: Host) -> tuple[int, ...]:
    """The hashes of the elements, as the set has stored them, in the order of its table."""
    return set_table(host)[2]


def finger(host: Host) -> int:
    """Where a set's next `pop()` begins to look."""
    return set_finger(host)


class Holds(Interned):
    """Whether a set has the element."""

    def __init__(self, element: Host) -> None:
        self.element = element

    def __call__(self, host: Host) -> bool:
        kind: Host = set if isinstance(host, set) else frozenset
        return bool(kind.__contains__(host, self.element))


class SetTable:
    """What a SetValue contains. The caller has touched the set before any method here changes it."""

    __slots__ = (
        "_aimed",
        "_compared",
        "_exact",
        "_gone",
        "_held",
        "_keys",
        "_lost",
        "_plain",
        "_varies",
        "_waiting",
        "complete",
        "host",
        "log",
        "source",
        "version",
    )

    def __init__(self, host: Host = None, source: Source | None = None) -> None:
        self.host = host
        self.source = source
        self._plain: bool | None = None
        self.complete = host is None
        #: existing sets: what was done, as (method, operands), to be done again when writing back
        self.log: list[tuple[str, list[Value]]] = []
        #: counts insertions and deletions
        self.version = 0
        self._keys: set[Host] = set()
        #: id of the stored key → (key, element), in the order of insertion
        self._held: dict[int, tuple[Host, Value]] = {}
        #: keys that have left; an id among them can only be written back while its object is alive
        self._gone: list[Host] = []
        #: whether `_keys` is laid out as the real set is, in every call; only then are operations on it the real ones
        self._exact = True
        #: whether the finger of `_keys`, where `pop` begins to look, is that of the real set
        self._aimed = host is None
        #: whether hash keys have met whose comparison may run methods of the program
        self._compared = False
        #: whether the finger cannot be known: an element was popped from an unknown place
        self._lost = False
        #: whether numbers that vary are among the elements: nothing has looked at the set since they were added
        self._varies = False
        #: what has been added to an existing set, with its keys, while nothing has asked what is in there
        self._waiting: list[tuple[Host, Value]] = []

    # -- reading ----------------------------------------------------------------------------------------------------

    def keys(self, space: Space) -> set[Host]:
        """The hash keys of all elements as a host set (not to be changed), guarded where the set existed before."""
        if not self.complete:
            self._finish(space)
        if self._varies:
            self._settle(space)
        return self._keys

    def _settle(self, space: Space) -> None:
        """The order depends on the numbers that vary: they are those they are now."""
        found = {id(key): settled(space, key) for key in self._keys}
        self._keys = fill_table(set(), set_table(self._keys), [found[id(key)] for key in self._keys])
        self._held = {id(found[ident]): (found[ident], value) for ident, (_, value) in self._held.items()}
        self._varies = False

    def _finish(self, space: Space) -> None:
        assert self.source is not None
        found = layout(self.host)
        items = found[1:]
        arranged = CallSource(layout, self.source, "layout")
        stable = all(is_plain(item) or is_lasting(item) for item in items)
        if not self._fixed():
            space.trace.guard(Equals(arranged, found) if stable else Length(self.source, len(items)))
        values: list[Value] = []
        for index, item in enumerate(items):
            if stable:
                values.append(space.existing(item) if is_lasting(item) else space.fresh(item))
            else:
                values.append(space.wrap(item, ItemSource(arranged, index + 1)))
        self.mirror(space, set_table(self.host), values)
        if self._compared:
            space.trace.guard(Equals(CallSource(hashes, self.source, "hashes"), hashes(self.host)))
        if self._exact and not stable:
            space.trace.guard(Equals(CallSource(places, self.source, "places"), found[0]))
        self.complete = True
        waiting, self._waiting = self._waiting, []
        for key, value in waiting:
            self.version += self._insert(settled(space, key), value)

    def _fixed(self) -> bool:
        """Whether the contents cannot change: a frozenset embedded in the code."""
        return self.source is not None and self.source.is_constant and self._kind is frozenset

    def mirror(self, space: Space, table: Host, values: list[Value]) -> None:
        """Be like a set that is there, of such a table, with these elements in order."""
        keys = [stored_key(space, value, number) for value, number in zip(values, table[2], strict=True)]
        self._compared = any(map(runs_methods, keys))
        alike = (runs_methods(key) or hash(key) == number for key, number in zip(keys, table[2], strict=True))
        if _steady(keys) and all(alike):
            self._keys = fill_table(set(), table, keys)
            self._held = {id(key): (key, value) for key, value in zip(keys, values, strict=True)}
        else:
            self._exact = False
            for key, value in zip(keys, values, strict=True):
                self._insert(key, value)

    def copy_exactly(self, space: Space, other: SetTable) -> None:
        """Become like the other: the same table, down to the places of deleted elements."""
        keys = other.keys(space)
        self._keys = _duplicate(keys)
        self._held = dict(other._held)
        self._exact = other._exact

    def _insert(self, key: Host, value: Value) -> bool:
        before, version = len(self._keys), self.version
        self._keys.add(key)
        if self.version != version:  # comparing elements has changed the set
            if all(stored is not key for stored in self._keys):
                return False
        elif len(self._keys) == before:
            return False
        self._held[id(key)] = (key, value)
        self._varies = self._varies or type(key) is SymbolKey
        self._exact = self._exact and (type(key) is SymbolKey or _steady([key]))
        self._compared = self._compared or runs_methods(key)
        return True

    def has(self, space: Space, key: Host) -> bool:
        key = self._grounded(space, key)
        if self.complete or self._waiting or not is_plain(key) or not self._is_plain():
            return key in self.keys(space)
        assert self.source is not None
        test = Holds(key)
        found = test(self.host)
        if not self._fixed():
            space.trace.guard(Equals(CallSource(test, self.source, f"{show(key)} in {{}}"), found))
        return found

    def _is_plain(self) -> bool:
        if self._plain is None:
            self._plain = all(map(is_plain, self.host))
        return self._plain

    @property
    def _kind(self) -> Host:
        return set if isinstance(self.host, set) else frozenset

    def size(self, space: Space) -> int:
        if not self.complete and self._waiting:
            self.keys(space)
        if self.complete:
            return len(self._keys)
        assert self.source is not None
        size: int = self._kind.__len__(self.host)
        space.trace.guard(Length(self.source, size))
        return size

    def varying_size(self, space: Space) -> Value | None:
        """The size of an existing set, as a symbol if it varies and nobody has asked for all elements."""
        if self.complete or self._waiting or self.source is None or self._fixed():
            return None
        return space.symbol(self._kind.__len__(self.host), CallSource(self._kind.__len__, self.source, "len"))

    def length(self) -> int:
        """The number of elements of a complete set."""
        return len(self._keys)

    def element(self, key: Host) -> Value:
        """The element that a stored key stands for."""
        return self._held[id(key)][1]

    def held(self) -> list[Value]:
        """The elements there are, as far as they have been looked at."""
        return [value for _, value in self._held.values() if self.complete] + [value for _, value in self._waiting]

    def in_order(self, space: Space) -> list[Value]:
        """The elements in the order of the real set; a break where that cannot be known."""
        keys = self.keys(space)
        if self.source is not None and not self._exact and all(method == "discard" for method, _ in self.log):
            return self.held()
        if len(keys) > 1 and not self._exact:
            raise Unsupported(errors.UnsupportedSlot("set", "iteration in an order that depends on addresses"))
        return [self.element(key) for key in keys]

    def steady_keys(self, space: Space) -> bool:
        """Whether the elements hash as the real ones do, in every call."""
        return _steady(self.keys(space))

    def is_exact(self, space: Space) -> bool:
        """Whether the host set is laid out as the real set is, in every call."""
        self.keys(space)
        return self._exact

    def check_order(self, space: Space) -> None:
        """Break where the elements have a definite order that cannot be known."""
        if not self.is_exact(space) and len(self._keys) > 1 and _steady(self._keys):
            raise Unsupported(errors.UnsupportedSlot("set", "an operation on a set whose order has an unseen history"))

    def hash_keys(self) -> list[Host]:
        """The hash keys of the elements, in the order of insertion."""
        return [key for key, _ in self._held.values()]

    def making(self) -> tuple[Host, list[Value]]:
        """How to make a new set like this one: its table, or None where inserting the elements in order makes it."""
        keys = self.hash_keys()
        if not self._exact:
            if len(keys) > 1 and _steady(keys):
                raise Unsupported(errors.NotReconstructible("a set whose order has an unseen history"))
            if not all(map(may_be_hashed, keys)):
                raise _runs_again()
            return None, self.held()
        table = set_table(self._keys)
        if not any(map(runs_methods, keys)):
            inserted = set(keys)
            if set_table(inserted) == table and all(map(operator.is_, inserted, self._keys)):
                return None, self.held()
        return table, [self.element(key) for key in self._keys]

    def is_laid_out(self) -> bool:
        """Whether a real set is to be given its table: to do the same to it would run methods of the program again."""
        if self._compared and not self._exact:
            raise _runs_again()
        return self._compared

    def laid_out(self) -> tuple[Host, list[Value]]:
        """The table to be, with its elements; the finger stays where it is unless it was moved."""
        taken, place, hashes = set_table(self._keys)
        return (taken, place if self._aimed else -1, hashes), [self.element(key) for key in self._keys]

    # -- writing ----------------------------------------------------------------------------------------------------

    def _grounded(self, space: Space, key: Host) -> Host:
        """The key as the elements of an existing set are compared with it."""
        return grounded(space, key) if self.source is not None and self._kind.__len__(self.host) else key

    def key_to_add(self, space: Space, item: Value) -> Host:
        """The hash key of what is added; a whole number that varies need not be known, as long as nothing asks."""
        item = item.force()
        now = item.number_now()
        if now is None or not (self._may_wait() or self._is_inserted()):
            return space.key_as(item, ELEMENT)
        return SymbolKey(space, item, now)

    def _may_wait(self) -> bool:
        """Whether what is added to an existing set can wait: nobody has asked for its elements, which run no code."""
        return not self.complete and self._is_plain()

    def _is_inserted(self) -> bool:
        """Whether a new set is what inserting its elements makes it, whichever they are."""
        if self.source is not None or not self._exact or self._lost or self._compared:
            return False
        return set_table(set(self.hash_keys())) == set_table(self._keys)

    def add(self, space: Space, key: Host, value: Value) -> None:
        if self._may_wait() and (type(key) is SymbolKey or is_plain(key)):
            self._waiting.append((key, value))
            self.note("add", value)
            return
        key = self._grounded(space, key)
        if self._varies or type(key) is SymbolKey:
            key = told_apart(space, key, self._keys)
        else:
            self.keys(space)
        if self._insert(key, value):
            self.version += 1
            self.note("add", value)

    def discard(self, space: Space, key: Host) -> bool:
        key = self._grounded(space, key)
        self.keys(space).discard(key)
        return self._forget("discard")

    def _forget(self, method: str) -> bool:
        """Whether the method has taken elements out of the host set."""
        if len(self._keys) == len(self._held):
            return False
        stored = set(map(id, self._keys))
        for ident in [ident for ident in self._held if ident not in stored]:
            key, value = self._held.pop(ident)
            self._gone.append(key)
            self.note(method, value)
        self.version += 1
        return True

    def note(self, method: str, *operands: Value) -> None:
        """Remember a change of an existing set; equal ones in a row are done in one go."""
        if self.source is None:
            return
        if not self.log or self.log[-1][0] != method or method not in _ONE_BY_ONE:
            self.log.append((method, []))
        self.log[-1][1].extend(operands)

    def clear(self, space: Space) -> None:
        if self.source is not None:
            if not any(method == "pop" for method, _ in self.log):  # which moves the finger for good
                self.log = []
            self.log.append(("clear", []))
            self.complete, self._waiting = True, []
        self._keys.clear()
        self._held = {}
        self._exact = self._exact or not self._lost
        self.version += 1

    def remove_all(self, space: Space, keys: Iterable[Host]) -> None:
        """`difference_update`: discard one after the other, then tidy the table up if many are gone from it."""
        for key in keys:
            self.discard(space, key)
        before = set_table(self.keys(space))
        self._keys.difference_update(())
        if self.log and self.log[-1][0] == "discard":
            self.log[-1] = ("difference_update", self.log[-1][1])
        elif not self._exact or set_table(self._keys) != before:
            self.note("difference_update")

    def toggle(self, space: Space, other: Host, found: dict[int, Value], exact: bool) -> None:
        """`symmetric_difference_update` with a host set or dict; `exact`: whether its order is known."""
        for key in list(other):
            if not self.discard(space, key):
                self.add(space, key, found[id(key)])
                self._exact = self._exact and exact

    def merge(self, space: Space, operand: Host, found: dict[int, Value], exact: bool, real: Value) -> None:
        """Add the keys of a host set or dict as `update` does; `found`: their elements by the keys' ids.

        `real` is a value that generated code can make, to update an existing set with.
        """
        self.keys(space)
        self.note("update", real)
        self._exact = self._exact and exact
        self._compared = self._compared or any(map(runs_methods, operand))
        try:
            self._keys.update(operand)
        finally:
            added = [key for key in self._keys if id(key) not in self._held]
            self._held.update({id(key): (key, found[id(key)]) for key in added})
            self._exact = self._exact and _steady(added)
            self.version += len(added)

    def intersect(self, space: Space, operands: Operands, reals: list[Value]) -> None:
        """`intersection_update`; `reals`: values for the operands that generated code can make."""
        found = operands.elements("intersection", self.elements(space))
        self._compared = self._compared or any(runs_methods(key) for host in operands.hosts for key in host)
        self._keys.intersection_update(*operands.hosts)
        self.note("intersection_update", *reals)
        self.result(self._keys, found, (self._exact and operands.exact) or (len(self._keys) < 2 and not self._lost))

    def pop(self, space: Space) -> Value:
        """Remove and return the element that the real set would."""
        if not self._aimed and len(self.keys(space)) > 1:
            assert self.source is not None
            place = finger(self.host)
            space.trace.guard(Equals(CallSource(finger, self.source, "finger"), place))
            self._keys = _duplicate(self._keys, place)
        self._aimed = True
        self._lost = self._lost or not self.is_exact(space)
        value = self.element(self._keys.pop())
        self._forget("pop")
        return value

    def elements(self, space: Space) -> dict[int, Value]:
        """The elements by the ids of their keys."""
        return {id(key): self.element(key) for key in self.keys(space)}

    def result(self, keys: set[Host], found: dict[int, Value], exact: bool) -> None:
        """Be the result of an operation on host sets; `found`: the elements by the ids of their keys."""
        self._keys = keys
        self._held = {id(key): (key, found[id(key)]) for key in keys}
        self._exact = exact and _steady(keys)
        self.version += 1


class Operands(NamedTuple):
    """The operands of a method as host sets, dicts and lists of keys; their elements by the keys' ids."""

    hosts: list[Host]
    #: values for them that generated code can make
    reals: list[Value]
    found: dict[int, Value]
    #: whether those that are sets are laid out as the real ones
    exact: bool

    def elements(self, method: str, mine: dict[int, Value]) -> dict[int, Value]:
        """The elements that a result takes, where keys are shared: an intersection is of the smaller one's."""
        first = self.hosts[0] if self.hosts else None
        theirs = method == "intersection" and not (isinstance(first, set) and len(first) > len(mine))
        return mine | self.found if theirs else self.found | mine


#: methods that act on one element at a time
_ONE_BY_ONE = frozenset({"add", "discard", "pop"})


def _duplicate(keys: set[Host], place: int | None = None) -> set[Host]:
    """A host set with the very same table, but for the finger where another is given."""
    taken, present, hashes = set_table(keys)
    twin: set[Host] = fill_table(set(), (taken, present if place is None else place, hashes), list(keys))
    return twin


def _runs_again() -> Unsupported:
    return Unsupported(errors.NotReconstructible("a set some of whose elements have methods to hash them"))


def _steady(keys: Iterable[Host]) -> bool:
    """Whether the hash keys hash as the real elements do, in every call."""
    return all(map(hashes_alike, leaves(keys)))
