"""The builtin iterator types: `enumerate`, `zip`, `map`, `filter`, `reversed` and `iter(callable, sentinel)`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import ClassVar, Self

from stator import errors
from stator.guards.guard import Equals, Length
from stator.guards.source import CallSource, ItemSource, Source
from stator.models.classes.instance import slot_effects
from stator.models.iterators.iterator import (
    IteratorValue,
    PositionIterator,
    advanced,
    item_at,
    iterator_type,
    own_class,
    reduction,
)
from stator.space.facts import expect_others
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.protocol import FALSE, NONE, TRUE
from stator.space.space import Space
from stator.space.value import Constant, Raised, Unsupported, Value

__all__ = ["CallableIterator", "OverOne", "next_where"]

_ONE = Constant(1)
#: whose items and lengths no code of the program's gives
_BUILTIN_SEQUENCES = (tuple, str, bytes)


# -- what guards call: the parts of an iterator that existed before the trace -----------------------------------------


def parts_of(iterator: Iterator[Host]) -> tuple[Host, ...]:
    """What a `map`, `filter`, `zip` or `enumerate` was made of."""
    return iterator.__reduce__()[1]  # type: ignore[return-value]


def strictness(iterator: Iterator[Host]) -> bool:
    """Whether a `zip` is strict."""
    return len(iterator.__reduce__()) > 2


def next_number(iterator: Iterator[Host]) -> int:
    """The number that an `enumerate` gives to the next item."""
    number: int = parts_of(iterator)[1]
    return number


def _changing(space: Space, host: Host, source: Source) -> Value:
    """What an existing iterator is made of. A number is another in the next round."""
    expect_others(space.trace, source)
    return space.wrap(host, source)


class _Composed(IteratorValue):
    """An iterator with no state but that of the iterators (and functions) it is made of."""

    __slots__ = ()

    def look_into(self, space: Space) -> None:
        assert self.source is not None
        source = CallSource(parts_of, self.source, "parts_of")
        parts = parts_of(self.host)
        space.trace.guard(Length(source, len(parts)))
        self.adopt(space, [_changing(space, part, ItemSource(source, i)).force() for i, part in enumerate(parts)])

    def adopt(self, space: Space, parts: list[Value]) -> None:
        """Take the parts of an existing iterator: what its `arguments` are."""
        raise NotImplementedError


def movers(space: Space, iterator: Value) -> list[IteratorValue]:
    """The existing iterators that stepping this one for real moves; a break where more than that would happen."""
    found = iterator.movers(space) if isinstance(iterator, IteratorValue) and iterator.source is not None else None
    if found is None:
        raise Unsupported(errors.OpaqueIterator(f"an enumerate object over {iterator.describe()}"))
    return found


@iterator_type(enumerate)
class EnumerateValue(_Composed):
    """`enumerate(iterable, start)`. An existing one counts, so its steps are taken for real."""

    __slots__ = ("count", "gone", "iterator", "moved")
    passes_stop = True

    #: the number of the next item, or of the last one; and whether that has been given, so that the next one is higher
    count: Value
    gone: int
    iterator: Value
    #: the existing iterators that its steps move as well
    moved: list[IteratorValue]

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, start: Value = Constant(0)) -> Value:  # noqa: B008 (immutable)
        owner, count = own_class(space, cls), space.index(start)
        return EnumerateValue.of(owner, iterator=space.iter(iterable), count=count, gone=0, moved=[])

    def adopt(self, space: Space, parts: list[Value]) -> None:
        assert self.source is not None
        number = _changing(space, next_number(self.host), CallSource(next_number, self.source, "next_number"))
        self.iterator, self.count, self.gone = parts[0], number, 0  # the number may be one that varies
        self.moved = movers(space, self.iterator)

    def produce(self, space: Space) -> Value | None:
        if self.gone:
            self.count, self.gone = self._counted(space), 0
        item = self._step_for_real(space) if self.moved else space.next(self.iterator)
        space.mark_mutated(self)
        self.steps += 1
        if item is None:
            return None
        self.gone = 1
        return space.new_tuple([self.count, item])

    def _counted(self, space: Space) -> Value:
        """The number of the next item."""
        count = self.count.force() if self.gone else self.count
        if self.gone and count.constant and count.cls is int:
            return Constant(count.host + 1)
        return space.binary("+", count, _ONE) if self.gone else count

    def _step_for_real(self, space: Space) -> Value | None:
        """A step of an existing one: taking it after the graph will move what it iterates over as well."""
        before = [mover.steps for mover in self.moved]
        item = space.next(self.iterator)
        for mover, steps in zip(self.moved, before, strict=True):
            mover.steps = steps
        return item

    def arguments(self, space: Space) -> list[Value]:
        return [self.iterator, self._counted(space)]


@iterator_type(zip)
class ZipValue(_Composed):
    """`zip(*iterables, strict=…)`."""

    __slots__ = ("iterators", "strict")

    iterators: list[Value]
    strict: bool

    @property
    def passes_stop(self) -> bool:  # type: ignore[override]
        """What ends a strict one is looked at, and dropped."""
        return not self.strict

    @staticmethod
    def tp_new(space: Space, cls: Value, *iterables: Value, strict: Value = FALSE) -> Value:
        owner, exact = own_class(space, cls), space.truth(strict)
        return ZipValue.of(owner, iterators=[space.iter(iterable) for iterable in iterables], strict=exact)

    def adopt(self, space: Space, parts: list[Value]) -> None:
        assert self.source is not None
        self.strict = strictness(self.host)
        space.trace.guard(Equals(CallSource(strictness, self.source, "strictness"), self.strict))
        self.iterators = parts

    def movers(self, space: Space) -> list[IteratorValue] | None:
        self.open(space)
        return [mover for part in self.iterators for mover in movers(space, part)]

    def produce(self, space: Space) -> Value | None:
        items: list[Value] = []
        for iterator in self.iterators:
            item = space.next(iterator)
            if item is None:
                if self.strict:
                    self._check_ends(space, len(items))
                return None
            items.append(item)
        return space.new_tuple(items) if items else None

    def _check_ends(self, space: Space, ended: int) -> None:
        if ended:
            raise space.error(ValueError, f"zip() argument {ended + 1} is shorter than argument{_up_to(ended)}")
        for index, iterator in enumerate(self.iterators[1:], 1):
            if space.next(iterator) is not None:
                raise space.error(ValueError, f"zip() argument {index + 1} is longer than argument{_up_to(index)}")

    def arguments(self, space: Space) -> list[Value]:
        return list(self.iterators)

    def state(self, space: Space) -> list[Value]:
        return [TRUE] * self.strict

    def restore(self, space: Space, state: Value) -> None:
        strict = space.truth(state)
        if self.source is not None:
            raise self.without_state()
        self.strict = strict

    def made(self, writer: Writer) -> str:
        return self.call_text(writer, *map(writer.expr, self.iterators), *["strict=True"] * self.strict)


def _up_to(index: int) -> str:
    return " 1" if index == 1 else f"s 1-{index}"


@iterator_type(map)
class MapValue(_Composed):
    """`map(function, *iterables)`."""

    __slots__ = ("function", "iterators")
    passes_stop = True

    function: Value
    iterators: list[Value]

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, iterable: Value, /, *iterables: Value) -> Value:
        owner = own_class(space, cls)
        return MapValue.of(owner, function=function, iterators=[space.iter(each) for each in (iterable, *iterables)])

    def adopt(self, space: Space, parts: list[Value]) -> None:
        self.function, *self.iterators = parts

    def produce(self, space: Space) -> Value | None:
        args: list[Value] = []
        for iterator in self.iterators:
            item = space.next(iterator)
            if item is None:
                return None
            args.append(item)
        return space.call(self.function, args, {})

    def arguments(self, space: Space) -> list[Value]:
        return [self.function, *self.iterators]


class OverOne(IteratorValue):
    """An iterator that asks a function about each item of one other."""

    __slots__ = ("function", "iterator")
    passes_stop = True

    function: Value
    iterator: Value

    @classmethod
    def over(cls, space: Space, host: Value, function: Value, iterable: Value, **state: object) -> Self:
        """A new one."""
        return cls.of(own_class(space, host), iterator=space.iter(iterable), function=function, **state)

    def arguments(self, space: Space) -> list[Value]:
        return [self.function, self.iterator]


@iterator_type(filter)
class FilterValue(OverOne, _Composed):
    """`filter(function, iterable)`."""

    __slots__ = ()

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, iterable: Value, /) -> Value:
        return FilterValue.over(space, cls, function, iterable)

    def adopt(self, space: Space, parts: list[Value]) -> None:
        self.function, self.iterator = parts

    def produce(self, space: Space) -> Value | None:
        return next_where(space, self.function, self.iterator, True)


def next_where(space: Space, predicate: Value, iterator: Value, wanted: bool) -> Value | None:
    """The next item of which the predicate says so; None and `bool` stand for the item's own truth."""
    chosen = space.identity(predicate)
    plain = chosen is None or chosen is bool
    while (item := space.next(iterator)) is not None:
        if space.truth(item if plain else space.call(predicate, [item], {})) is wanted:
            return item
    return None


def move_back_to(iterator: Host, index: int) -> None:
    """Set the position of a `reversed`; below 0 is the end, where it lets go of its sequence."""
    reversed.__setstate__(iterator, index)  # type: ignore[attr-defined]
    if index < 0:
        with contextlib.suppress(StopIteration):
            reversed.__next__(iterator)


@iterator_type(reversed)
class ReversedValue(PositionIterator):
    """`reversed(sequence)`, of a sequence that has no `__reversed__`."""

    __slots__ = ()

    base = tuple
    maker: ClassVar[Host] = reversed
    exhausted_maker: ClassVar[Host] = reversed
    step = -1

    @staticmethod
    def tp_new(space: Space, cls: Value, sequence: Value, /) -> Value:
        owner, sequence = own_class(space, cls), sequence.force()
        if space.host_lookup(sequence.cls, "__reversed__") is not None:
            slot = space.special(sequence, "__reversed__")
            if slot is not None:
                return space.call(slot, [sequence], {})
            if space.special(sequence, "__getitem__") is not None and not sequence.isa(dict):
                return ReversedValue.of(owner, target=sequence, index=space.int_(space.len(sequence)) - 1)
        raise space.error(TypeError, f"'{sequence.type_name(space)}' object is not reversible")

    def fetch(self, space: Space, target: Value, index: int) -> Value | None:
        return item_at(space, target, index)

    def left(self, space: Space) -> int:
        left = self.index + 1
        return 0 if self.target is None or left > space.int_(space.len(self.target)) else left

    def begun(self, writer: Writer, target: str) -> str:
        return self.call_text(writer, target)

    def rebuilt(self, writer: Writer) -> str:
        if self.target is None or self.target.cls in _BUILTIN_SEQUENCES:
            return super().rebuilt(writer)
        self._refuse_telling(writer.trace.space)
        name = writer.assign("iterator", self.begun(writer, writer.expr(self.target)))
        writer.late.append(f"{writer.const(move_back_to)}({name}, {self.index})")
        return name

    def effects(self, writer: Writer) -> list[str]:
        """A step for real would run the program's `__getitem__` again: the position is set instead."""
        assert self.source is not None
        if self.target is not None and self.target.cls not in _BUILTIN_SEQUENCES:
            self._refuse_telling(writer.trace.space)
        if self.steps:
            at = self.index if self.target is not None else -1
            writer.late.append(f"{writer.const(move_back_to)}({writer.source(self.source)}, {at})")
        return slot_effects(self, writer)

    def movers(self, space: Space) -> list[IteratorValue] | None:
        self.open(space)
        own = self.target is None or self.target.cls in _BUILTIN_SEQUENCES
        return super().movers(space) if own else None

    def _refuse_telling(self, space: Space) -> None:
        """`reversed` asks the sequence for its length when it is made, and when it is given a position: a `__len__` of
        the program's must do no more than answer, and the position must be one that the sequence has."""
        assert self.target is not None
        before = space.trace.mutation_count
        length = space.int_(space.len(self.target))
        if space.trace.mutation_count != before or self.index >= length:
            raise Unsupported(errors.NotReconstructible(self.describe()))

    def exhausted(self, writer: Writer) -> str:
        return self.call_text(writer, "()")


@iterator_type(type(iter(int, 1)))
class CallableIterator(IteratorValue):
    """`iter(callable, sentinel)`."""

    __slots__ = ("done", "function", "sentinel")

    def __init__(self, function: Value, sentinel: Value) -> None:
        super().__init__()
        self.function = function
        self.sentinel = sentinel
        self.done = False

    def produce(self, space: Space) -> Value | None:
        if self.done:
            return None
        try:
            result = space.call(self.function, [], {})
            if not self.done and not space.equal(self.sentinel, result):  # the call may have used the iterator up
                return result
        except Raised as e:
            if not e.value.isa(StopIteration):
                raise
        space.mark_mutated(self)
        self.done = True
        self.function = self.sentinel = NONE
        return None

    def reduced(self, space: Space) -> Value:
        return reduction(space, iter, [space.new_tuple([])] if self.done else [self.function, self.sentinel])

    def rebuilt(self, writer: Writer) -> str:
        if self.done:
            return advanced(writer, "iter(int, 0)", 1)
        return writer.assign("iterator", f"iter({writer.expr(self.function)}, {writer.expr(self.sentinel)})")
