"""The contents of a traced set: a host set of hashable stand-ins, on which CPython's own algorithm and order work."""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.guards.guard import Equals, Length
from stator.guards.source import CallSource, ConstSource, ItemSource, Source
from stator.objects.dict_table import is_lasting, is_plain
from stator.objects.keys import IdentityKey, TracedKey, grounded
from stator.objects.set_history import Elements, Past, same_layout
from stator.objects.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.objects.space import Space


# -- what guards call ----------------------------------------------------------------------------------------------


def layout(host: Any) -> tuple[Any, ...]:
    """The size of a set's table, then its elements in order."""
    kind: Any = set if isinstance(host, set) else frozenset
    return (kind.__sizeof__(host), *kind.__iter__(host))


class _Holds:
    """Whether a set has the element."""

    def __init__(self, element: Any) -> None:
        self.element = element

    def __call__(self, host: Any) -> bool:
        kind: Any = set if isinstance(host, set) else frozenset
        return bool(kind.__contains__(host, self.element))

    def __reduce__(self) -> tuple[Any, ...]:
        return holds, (self.element,)


@functools.lru_cache(maxsize=None, typed=True)
def holds(element: Any) -> _Holds:
    """The test for an element, one object for each, as sources are interned by it."""
    return _Holds(element)


def iterated_set(iterator: Any) -> Any:
    """The set an iterator runs over."""
    for referent in gc.get_referents(iterator):
        if isinstance(referent, (set, frozenset)):
            return referent
    raise LookupError("the iterator is exhausted")


class SetTable:
    """What a SetValue contains. The caller has touched the set before any method here changes it."""

    __slots__ = ("_exact", "_held", "_keys", "_plain", "complete", "host", "log", "past", "shared", "source", "version")

    def __init__(self, host: Any = None, source: Source | None = None) -> None:
        self.host = host
        self.source = source
        self._plain: bool | None = None
        self.complete = host is None
        #: existing sets: what was done, as (method, elements), to be done again when writing back
        self.log: list[tuple[str, list[Value]]] = []
        #: counts insertions and deletions
        self.version = 0
        self._keys: Any = set()
        #: id of the stored key → (key, element), in the order of insertion; deleted ones may linger
        self._held: dict[int, tuple[Any, Value]] = {}
        #: whether `_keys` is a host set that is not ours to change
        self.shared = False
        #: how a set made by the trace came to be
        self.past = Past()
        #: whether `_keys` orders its elements as the real set does
        self._exact = True

    # -- reading ----------------------------------------------------------------------------------------------------

    def keys(self, space: Space) -> Any:
        """The stand-ins of all elements as a host set (not to be changed), guarded where the set existed before."""
        if not self.complete:
            self._finish(space)
        return self._keys

    def _finish(self, space: Space) -> None:
        assert self.source is not None
        found = layout(self.host)
        items = found[1:]
        arranged = CallSource(layout, self.source, "layout")
        stable = all(is_plain(item) or is_lasting(item) for item in items)
        if not self._fixed():
            space.trace.guard(Equals(arranged, found) if stable else Length(self.source, len(items)))
        self._exact = stable
        for index, item in enumerate(items):
            if stable:
                value = space.existing(item) if is_lasting(item) else space.fresh(item)
            else:
                value = space.wrap(item, ItemSource(arranged, index + 1))
            key = space.key(value)
            self._insert(key, value)
            self._exact = self._exact and key is item
        if self._exact:
            self._keys = self.host
        self.complete = True

    def _fixed(self) -> bool:
        """Whether the contents cannot change: a frozenset embedded in the code."""
        return type(self.source) is ConstSource and isinstance(self.host, frozenset)

    def _insert(self, key: Any, value: Value) -> bool:
        before = len(self._keys)
        self._keys.add(key)
        if len(self._keys) == before:
            return False
        self._held.pop(id(key), None)
        self._held[id(key)] = (key, value)
        return True

    def has(self, space: Space, key: Any) -> bool:
        key = self._grounded(space, key)
        if self.complete or not is_plain(key) or not self._is_plain():
            return key in self.keys(space)
        assert self.source is not None
        test = holds(key)
        found = test(self.host)
        if not self._fixed():
            space.trace.guard(Equals(CallSource(test, self.source, f"has_{type(key).__name__}"), found))
        return found

    def _is_plain(self) -> bool:
        if self._plain is None:
            self._plain = all(map(is_plain, self.host))
        return self._plain

    def size(self, space: Space) -> int:
        if self.complete:
            return len(self._keys)
        assert self.source is not None
        kind: Any = set if isinstance(self.host, set) else frozenset
        size: int = kind.__len__(self.host)
        space.trace.guard(Length(self.source, size))
        return size

    def length(self) -> int:
        """The number of elements of a complete set."""
        return len(self._keys)

    def element(self, key: Any) -> Value:
        """The element that a stored key stands for."""
        return self._held[id(key)][1]

    def held(self) -> list[Value]:
        """The elements there are, as far as they have been looked at."""
        if not self.complete:
            return []
        stored = {id(key) for key in self._keys}
        return [value for ident, (_, value) in self._held.items() if ident in stored]

    def elements(self, space: Space) -> list[Value]:
        """The elements in no particular order, for what does not depend on it."""
        return [self.element(key) for key in self.keys(space)]

    def in_order(self, space: Space) -> list[Value]:
        """The elements in the order of the real set; a break where that cannot be known."""
        keys = self.keys(space)
        if self.source is not None and all(method == "discard" for method, _ in self.log):
            return [value for _, value in self._held.values()]
        if len(keys) > 1 and not self.steady():
            raise Unsupported(errors.UnsupportedSlot("set", "iteration in an order that depends on addresses"))
        return [self.element(key) for key in keys]

    def steady(self) -> bool:
        """Whether the host set orders its elements as the real set does, in every call."""
        return self._exact and _steady(self._keys)

    def steady_keys(self, space: Space) -> bool:
        """Whether the elements hash as the real ones do, in every call."""
        return _steady(self.keys(space))

    def making(self, kind: type) -> Past:
        """How to make a new set like this one."""
        inserted = [self._held[id(key)] for key in self._in_order_of_insertion()]
        simple = Past("", None, Elements("list", inserted)) if inserted else Past()
        if not self._exact and _steady(self._keys) and len(inserted) > 1:
            raise Unsupported(errors.NotReconstructible("a set whose order has an unseen history"))
        if not self.steady() or (not self.past.marked and same_layout(simple.replay(set), self._keys)):
            return simple
        if same_layout(self.past.replay(kind), self._keys):
            return self.past
        raise Unsupported(errors.NotReconstructible("a set whose order comes from its history"))

    def _in_order_of_insertion(self) -> list[Any]:
        stored = {id(key) for key in self._keys}
        return [key for ident, (key, _) in self._held.items() if ident in stored]

    # -- writing ----------------------------------------------------------------------------------------------------

    def own(self, space: Space) -> None:
        """Before a change: stop sharing the host set of an existing set, or of a real computation."""
        keys = self.keys(space)
        if self._untouched():
            # How the real set lays out what comes now depends on its past, which nobody can see.
            self._keys = set(keys)
            self._exact = False
        elif self.shared:
            self._keys = set(keys)
            self._exact = same_layout(self._keys, keys)
        self.shared = False

    def _grounded(self, space: Space, key: Any) -> Any:
        """The key as the elements of an existing set are compared with it."""
        return grounded(space, key) if self.source is not None and self.host else key

    def _untouched(self) -> bool:
        """Whether it is an existing set as it was before the trace."""
        return self.source is not None and not self.log

    def add(self, space: Space, key: Any, value: Value) -> None:
        key = self._grounded(space, key)
        if self._untouched() and key in self.keys(space):
            return
        self.own(space)
        if self._insert(key, value):
            self.version += 1
            self.past = self.past.then("add", (key, value))
            self.note("add", value)

    def discard(self, space: Space, key: Any) -> bool:
        key = self._grounded(space, key)
        if self._untouched() and key not in self.keys(space):
            return False
        self.own(space)
        before = len(self._keys)
        self._keys.discard(key)
        if len(self._keys) == before:
            return False
        self.version += 1
        self._forget()
        return True

    def clear(self, space: Space) -> None:
        if self.source is not None:
            self.log = [("clear", [])]
            self.complete = True
        self._exact = True
        self.become(set(), {}, Past())

    def _forget(self) -> None:
        """An element has left the set."""
        stored = {id(stored) for stored in self._keys}
        for ident in [ident for ident in self._held if ident not in stored]:
            gone = self._held.pop(ident)
            self.past = self.past.then("discard", gone)
            self.note("discard", gone[1])

    def note(self, method: str, value: Value) -> None:
        """Remember a change of an existing set; equal ones in a row are done in one go."""
        if self.source is None:
            return
        if not self.log or self.log[-1][0] != method:
            self.log.append((method, []))
        self.log[-1][1].append(value)

    def merge(self, space: Space, operand: Any, found: dict[int, Value], real: Value, past: Past | Elements) -> None:
        """Add the keys of a host set or dict as `update` does; `found`: their elements by the keys' ids.

        `real` is a value that generated code can make, to update an existing set with; `past` is how it came to be.
        """
        self.own(space)
        if self.source is not None:
            self.log.append(("update", [real]))
        before = set(map(id, self._keys))
        begun = self.past.before is None and not self.past.operands and not before
        try:
            self._keys.update(operand)
        finally:
            after = set(map(id, self._keys)) - before
            for key in operand:
                if id(key) in after:
                    self._held[id(key)] = (key, found[id(key)])
                    self.version += 1
        self.past = Past("", None, past) if begun else Past("update", self.past, past)

    def pop(self, space: Space) -> Value:
        """Remove and return the element that the real set would."""
        if self.source is not None:
            (key,) = self.keys(space)
            value = self.element(key)
            self.discard(space, key)
            return value
        self.version += 1
        value = self.element(self._keys.pop())
        self._forget()
        return value

    def replace(self, space: Space, other: SetTable) -> None:
        """Take the contents of an intersection of this set with something."""
        self.own(space)
        if self.source is not None:
            self.log.append(("intersection_update", other.elements(space)))
        self._exact = self._exact and other._exact
        self.become(other._keys, other._held, other.past)

    def result(self, keys: Any, found: dict[int, Value], past: Past, exact: bool) -> None:
        """Be the result of an operation on host sets; `found`: the elements by the ids of their keys."""
        self._exact = exact
        self.become(keys, {id(key): (key, found[id(key)]) for key in keys}, past)

    def check_order(self, space: Space) -> None:
        """Break where the elements have a definite order that cannot be known."""
        if self._exact or not self.steady_keys(space):
            return
        if len(self._keys) > 1 or self.past.marked:
            raise Unsupported(errors.UnsupportedSlot("set", "an operation on a set whose order has an unseen history"))
        self._exact = True
        self.past = Past("", None, Elements("list", list(self._held.values())))

    def is_exact(self, space: Space) -> bool:
        """Whether the host set is ordered as the real set is in this call."""
        self.keys(space)
        return self._exact

    def become(self, keys: Any, held: dict[int, tuple[Any, Value]], past: Past) -> None:
        """Take other contents."""
        self._keys = keys
        self._held = held
        self.past = past
        self.version += 1


def _steady(keys: Iterable[Any]) -> bool:
    """Whether the stand-ins hash as the real elements do, in every call."""
    left, seen = list(keys), set[int]()
    while left:
        key = left.pop()
        if type(key) is tuple or type(key) is frozenset:
            if id(key) not in seen:  # sets of sets hold one over and over
                seen.add(id(key))
                left += key
        elif not _hashes_alike(key):
            return False
    return True


def _hashes_alike(key: Any) -> bool:
    if type(key) is IdentityKey:
        return is_lasting(key.anchor) and hash(key) == object.__hash__(key.anchor)
    return type(key) is TracedKey or is_plain(key) or is_lasting(key)
