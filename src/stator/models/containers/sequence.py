"""What lists and tuples share: items loaded when first needed, indexing, comparison, search, repr."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable
from typing import ClassVar, Self

from stator import errors
from stator.guards.guard import Distinct, Length
from stator.guards.source import CallSource, ConstSource, ItemSource, Source
from stator.host.version_facts import SEARCHES_SHOW_THE_ITEM
from stator.host.words import error_words
from stator.models.classes.instance import held_attributes
from stator.models.numbers.advice import FOR_ITEMS, advising
from stator.space.deferred import DeferredStr, concatenated
from stator.space.host_types import Host
from stator.space.identity.reachability import missing
from stator.space.operands import bool_value
from stator.space.protocol import NOT_IMPLEMENTED
from stator.space.recursion import acyclic, compared, entered, enumeration, repr_piece
from stator.space.space import Space
from stator.space.value import Constant, ExtensibleValue, Raised, Unsupported, Value

__all__ = ["MAXSIZE", "Sequence", "is_slice", "slice_index", "slice_of", "too_long"]

MAXSIZE = (1 << 63) - 1
#: a traced sequence this long was surely not meant to be unrolled
_LONGEST = 10_000_000


def too_long(count: int) -> None:
    """Break rather than build a sequence of values that would fill the memory."""
    if count > _LONGEST:
        raise Unsupported(errors.SequenceTooLong(count))


def is_slice(key: Value) -> bool:
    """Whether a subscript is a slice object."""
    return key.cls is slice


def slice_index(space: Space, value: Value, default: int | None, words: str = "integers or None or") -> int | None:
    """`_PyEval_SliceIndex`: one member of a slice, `default` for None."""
    value = value.force()
    if value.is_none() and default is None:
        return None
    if not value.isa(int) and space.special(value, "__index__") is None:
        raise space.error(TypeError, f"slice indices must be {words} have an __index__ method")
    return max(-MAXSIZE, min(MAXSIZE, space.int_(value)))


def slice_of(space: Space, key: Value) -> slice:
    """The host slice of ints for a traced slice; the members are converted in CPython's order."""
    host = space.known(key)
    if type(host) is slice and all(type(m) in (int, type(None)) for m in (host.start, host.stop, host.step)):
        if host.step == 0:
            raise space.error(ValueError, "slice step cannot be zero")
        return host
    parts = {name: space.getattr(key, name) for name in ("start", "stop", "step")}
    step = slice_index(space, parts["step"], None)
    if step == 0:
        raise space.error(ValueError, "slice step cannot be zero")
    start = slice_index(space, parts["start"], None)
    return slice(start, slice_index(space, parts["stop"], None), step)


@functools.cache
def _reader(read: Callable[[Host, int], Host], index: int) -> Callable[[Host], Host]:
    """What reads the item at an index; one function for each, as sources are interned by it."""
    return lambda sequence: read(sequence, index)


class Sequence(ExtensibleValue):
    """A list, tuple or deque. `items` of an existing one is built, and its length guarded, at the first use.

    A single item at a known position is reached through `item` without a guard on the length.
    """

    __slots__ = ("_busy", "_items", "_slots", "space")

    #: the builtin type, whose methods are called on instances of subclasses, too
    kind: ClassVar[Host]
    space: Space

    def __init__(self, items: list[Value] | None, cls: type | None = None) -> None:
        # What the bases would set: so many are made that three calls for each would show in what tracing costs.
        self.cls = cls or self.kind
        self.source = self._attrs = None
        self.host: Host = None
        self._items = items
        self._slots: dict[Host, Value | None] | None = None
        self._busy = False

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Self:
        """An existing one."""
        self = cls(None, space.guard_type(host, source))
        self.source, self.host, self.space = source, host, space
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> Self:
        """The result of a real computation."""
        return cls([space.fresh(item) for item in cls.kind.__iter__(host)], type(host))

    def dropped(self, hosts: list[Host]) -> list[Host]:
        return [] if self._items is None else missing(hosts, self._items)

    def held(self) -> Iterable[Value]:
        items = self._items or ()
        return items if self._attrs is None and not self._slots else (*items, *held_attributes(self))

    @property
    def changed(self) -> bool:
        """Whether the traced program has changed this existing one."""
        return False

    @property
    def slots(self) -> dict[Host, Value | None]:
        """Variables in `__slots__` that the traced program has set (or, with None, deleted), by their descriptor."""
        if self._slots is None:
            self._slots = {}
        return self._slots

    # -- items ------------------------------------------------------------------------------------------------------

    @property
    def items(self) -> list[Value]:
        """The items now; asking depends on how many there are."""
        items = self._items
        return self._load() if items is None else items

    def _load(self) -> list[Value]:
        count = self._known_length()
        too_long(count)
        items = self._items = [self._child(i) for i in range(count)]
        return items

    def _known_length(self) -> int:
        """The length of an existing one before the trace, guarded."""
        source = self.source
        assert source is not None
        count: int = self.kind.__len__(self.host)
        if not source.is_constant or self.kind is not tuple:
            self.space.trace.guard(Length(source, count))
        return count

    def _child(self, index: int) -> Value:
        source = self.source
        assert source is not None
        child = self.kind.__getitem__(self.host, index)
        if source.is_constant and self.kind is tuple:
            return self.space.wrap(child, ConstSource(child, f"{source.expr()}[{index}]"))
        return self.space.wrap(child, self.item_source(source, index))

    def item_source(self, source: Source, index: int) -> ItemSource:
        """Where an item of it is, when it is there itself."""
        return ItemSource(source, index)

    def item(self, index: int) -> Value | None:
        """The item at a position counted from the front, or None beyond the end."""
        items = self._items
        if items is None:
            if index < self.kind.__len__(self.host):
                child = self._child(index)
                if child.source is not None and not child.source.is_constant:
                    # A guard that only loads: there must be such an item, even if it is never looked at.
                    self.space.trace.guard(Distinct(child.source, ()))
                return child
            items = self.items
        if index < len(items):
            return items[index]
        return None

    def from_end(self, space: Space, distance: int) -> Value | None:
        """The item at a distance from the end, or None beyond the front."""
        found = None if self.varying_length(space) is None else self._last(space, distance)
        if found is not None:
            return found
        items = self.items  # that there is none is a fact about the length
        return items[-distance] if distance <= len(items) else None

    def _last(self, space: Space, distance: int) -> Value | None:
        assert self.source is not None
        if distance > self.kind.__len__(self.host):
            return None
        read = _reader(self.kind.__getitem__, -distance)
        return space.wrap(read(self.host), CallSource(read, self.source, f"{{}}[{-distance}]"))

    def unpack(self, space: Space) -> list[Value]:
        return list(self.items)

    def left_with(self, source: Source) -> tuple[int, list[tuple[Source, Value]]]:
        """How many items it has now, and those of which the trace knows, by where they will be found."""
        items = self._items
        if items is None:
            return self.kind.__len__(self.host), []
        return len(items), [(self.item_source(source, index), item) for index, item in enumerate(items)]

    # -- the object itself ------------------------------------------------------------------------------------------

    @acyclic
    def host_items(self, space: Space) -> list[Host]:
        """The items as host objects; raises NotKnown where one is not known, or holds this sequence itself."""
        return [item.as_host(space) for item in self.items]

    def build(self, items: list[Value]) -> Value:
        """A new sequence of the builtin type itself."""
        return type(self)(items)

    # -- indexing ---------------------------------------------------------------------------------------------------

    def get(self, space: Space, key: Value) -> Value:
        """`self[key]`."""
        key = key.force()
        if is_slice(key):
            return self.build(self.items[slice_of(space, key)])
        selected = self.selected(space, key)
        if selected is not None:
            return selected
        index = self.position(space, key)
        found = self.item(index) if index >= 0 else self.from_end(space, -index)
        if found is None:
            raise space.error(IndexError, f"{self.kind.__name__} index out of range")
        return found

    def selected(self, space: Space, key: Value) -> Value | None:
        """The item of an existing one at a symbol (`Value.select`)."""
        if self.source is None or self.changed:
            return None
        return key.select(space, self, self.kind.__getitem__)

    def position(self, space: Space, key: Value) -> int:
        """The host int of a subscript that is no slice."""
        if key.constant and key.cls is int and -MAXSIZE <= key.host <= MAXSIZE:
            return int(key.host)
        if not key.isa(int) and space.special(key, "__index__") is None:
            name = self.kind.__name__
            raise space.error(TypeError, f"{name} indices must be integers or slices, not {key.type_name(space)}")
        with advising(FOR_ITEMS):
            index = space.int_(key)
        if not -MAXSIZE - 1 <= index <= MAXSIZE:
            raise space.error(IndexError, f"cannot fit '{key.type_name(space)}' into an index-sized integer")
        return index

    def tp_len(self, space: Space) -> Value:
        if self._items is not None:
            return Constant(len(self._items))
        varying = self.varying_length(space)
        return Constant(self._known_length()) if varying is None else varying

    def varying_length(self, space: Space) -> Value | None:
        """The length of an existing one, as a symbol if it varies and nobody has asked for all items."""
        source = self.source
        if self._items is not None or source is None or source.is_constant:
            return None
        count = self.kind.__len__
        return space.symbol(count(self.host), CallSource(count, source, "len"))

    def tp_add(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if not isinstance(other, Sequence) or other.kind is not self.kind:
            name = self.kind.__name__
            raise space.error(TypeError, f'can only concatenate {name} (not "{other.type_name(space)}") to {name}')
        return self.build(self.items + other.items)

    def tp_mul(self, space: Space, count: Value, /) -> Value:
        return self.build(self.items * self.repetitions(space, count))

    def tp_rmul(self, space: Space, count: Value, /) -> Value:
        return self.tp_mul(space, count)

    def repetitions(self, space: Space, count: Value) -> int:
        """The host int of the other operand of `self * count`."""
        count = count.force()
        times = space.int_(count)
        if not -MAXSIZE - 1 <= times <= MAXSIZE:
            raise space.error(OverflowError, f"cannot fit '{count.type_name(space)}' into an index-sized integer")
        times = max(times, 0)
        too_long(times * len(self.items))
        return times

    # -- searching --------------------------------------------------------------------------------------------------

    def find(self, space: Space, item: Value, start: int = 0, stop: int = MAXSIZE) -> int | None:
        """The first position whose item equals `item`; the length is read anew each time, as `==` may change it."""
        index = start
        while index < stop and (found := self.item(index)) is not None:
            if space.equal(found, item):
                return index
            index += 1
        return None

    def bounds(self, space: Space, start: Value | None, stop: Value | None) -> tuple[int, int]:
        """The optional limits of `index()`, negative ones counted from the end."""
        limits = [0, MAXSIZE]
        for which, value in enumerate((start, stop)):
            if value is not None:
                given = slice_index(space, value, limits[which], "integers or")
                assert given is not None
                limits[which] = max(given + len(self.items), 0) if given < 0 else given
        return limits[0], limits[1]

    def tp_contains(self, space: Space, item: Value, /) -> Value:
        return bool_value(self.find(space, item) is not None)

    def index(self, space: Space, item: Value, start: Value | None = None, stop: Value | None = None, /) -> Value:
        found = self.find(space, item, *self.bounds(space, start, stop))
        if found is None:
            raise self.not_in(space, item, "index")
        return Constant(found)

    def not_in(self, space: Space, item: Value, search: str) -> Raised:
        """The ValueError of a method such as `index`, where no item equals what is looked for."""
        if not SEARCHES_SHOW_THE_ITEM:
            return space.error(ValueError, error_words(getattr(self.kind(), search), None))
        return space.error(ValueError, concatenated(repr_piece(space, item), f" is not in {self.kind.__name__}"))

    def count(self, space: Space, item: Value, /) -> Value:
        count = index = 0
        while (found := self.item(index)) is not None:
            count += space.equal(found, item)
            index += 1
        return Constant(count)

    # -- comparing --------------------------------------------------------------------------------------------------

    def tp_richcompare(self, space: Space, symbol: str, other: Value) -> Value:
        """The lexicographic comparison of `list_richcompare` and `tuplerichcompare`."""
        if not isinstance(other, Sequence) or other.kind is not self.kind:
            return NOT_IMPLEMENTED
        if symbol in ("==", "!=") and self.kind is list and len(self.items) != len(other.items):
            return bool_value(symbol == "!=")
        theirs: Sequence = other
        return compared(space, self, other, lambda: self._lexicographic(space, symbol, theirs))

    def _lexicographic(self, space: Space, symbol: str, other: Sequence) -> Value:
        index = 0
        while True:
            ours, theirs = self.item(index), other.item(index)
            if ours is None or theirs is None:
                return bool_value(ORDER[symbol](len(self.items), len(other.items)))
            if not space.equal(ours, theirs):
                if self.item(index) is None or other.item(index) is None:  # the comparison has shortened one
                    return bool_value(ORDER[symbol](len(self.items), len(other.items)))
                break
            index += 1
        if symbol in ("==", "!="):
            return bool_value(symbol == "!=")
        return space.compare(symbol, ours, theirs)

    # -- text -------------------------------------------------------------------------------------------------------

    def shown(self, space: Space, opening: str, closing: str) -> Value:
        """`repr(self)`: a sequence inside itself is shown as dots."""
        with entered(space, self) as again:
            if again:
                return Constant(f"{opening}...{closing}")
            pieces: list[str | DeferredStr] = []
            while (found := self.item(len(pieces))) is not None:
                pieces.append(repr_piece(space, found))
        comma = "," if self.kind is tuple and len(self.items) == 1 else ""
        return enumeration(opening, pieces, f"{comma}{closing}")


ORDER: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
