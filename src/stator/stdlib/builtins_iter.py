"""The builtin iterator types: `enumerate`, `zip`, `map`, `filter`, `reversed` and `iter(callable, sentinel)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.objects.protocol import NONE
from stator.objects.value import Constant, Raised, Value
from stator.stdlib.streams import Stream, own_class, stream

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.residual.writer import Writer

_ONE = Constant(1)


@stream(enumerate)
class EnumerateValue(Stream):
    """`enumerate(iterable, start)`."""

    __slots__ = ("count", "iterator")

    def __init__(self, iterator: Value, count: Value) -> None:
        super().__init__(enumerate)
        self.iterator = iterator
        self.count = count

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, start: Value = Constant(0)) -> Value:  # noqa: B008 (immutable)
        own_class(space, cls, enumerate)
        count = space.index(start)
        return EnumerateValue(space.iter(iterable), count)

    def advance(self, space: Space) -> Value | None:
        item = space.next(self.iterator)
        if item is None:
            return None
        space.touch(self)
        count, self.count = self.count, space.binary("+", self.count, _ONE)
        return space.new_tuple([count, item])

    def made(self, writer: Writer) -> str:
        return f"enumerate({writer.expr(self.iterator)}, {writer.expr(self.count)})"


@stream(zip)
class ZipValue(Stream):
    """`zip(*iterables, strict=…)`."""

    __slots__ = ("iterators", "strict")

    def __init__(self, iterators: list[Value], strict: bool) -> None:
        super().__init__(zip)
        self.iterators = iterators
        self.strict = strict

    @staticmethod
    def tp_new(space: Space, cls: Value, *iterables: Value, strict: Value = Constant(False)) -> Value:  # noqa: B008
        own_class(space, cls, zip)
        exact = space.truth(strict)
        return ZipValue([space.iter(iterable) for iterable in iterables], exact)

    def advance(self, space: Space) -> Value | None:
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

    def made(self, writer: Writer) -> str:
        parts = [writer.expr(iterator) for iterator in self.iterators]
        return f"zip({', '.join(parts + ['strict=True'] * self.strict)})"


def _up_to(index: int) -> str:
    return " 1" if index == 1 else f"s 1-{index}"


@stream(map)
class MapValue(Stream):
    """`map(function, *iterables)`."""

    __slots__ = ("function", "iterators")

    def __init__(self, function: Value, iterators: list[Value]) -> None:
        super().__init__(map)
        self.function = function
        self.iterators = iterators

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, iterable: Value, /, *iterables: Value) -> Value:
        own_class(space, cls, map)
        return MapValue(function, [space.iter(each) for each in (iterable, *iterables)])

    def advance(self, space: Space) -> Value | None:
        args: list[Value] = []
        for iterator in self.iterators:
            item = space.next(iterator)
            if item is None:
                return None
            args.append(item)
        return space.call(self.function, args, {})

    def made(self, writer: Writer) -> str:
        return f"map({', '.join(map(writer.expr, [self.function, *self.iterators]))})"


@stream(filter)
class FilterValue(Stream):
    """`filter(predicate, iterable)`."""

    __slots__ = ("iterator", "predicate")

    def __init__(self, predicate: Value, iterator: Value) -> None:
        super().__init__(filter)
        self.predicate = predicate
        self.iterator = iterator

    @staticmethod
    def tp_new(space: Space, cls: Value, predicate: Value, iterable: Value, /) -> Value:
        own_class(space, cls, filter)
        return FilterValue(predicate, space.iter(iterable))

    def advance(self, space: Space) -> Value | None:
        chosen = space.identity(self.predicate)
        plain = chosen is None or chosen is bool
        while (item := space.next(self.iterator)) is not None:
            if space.truth(item if plain else space.call(self.predicate, [item], {})):
                return item
        return None

    def made(self, writer: Writer) -> str:
        return f"filter({writer.expr(self.predicate)}, {writer.expr(self.iterator)})"


@stream(reversed)
class ReversedValue(Stream):
    """`reversed(sequence)`, of a sequence that has no `__reversed__`."""

    __slots__ = ("index", "sequence")

    def __init__(self, sequence: Value, index: int) -> None:
        super().__init__(reversed)
        self.sequence = sequence
        self.index = index

    @staticmethod
    def tp_new(space: Space, cls: Value, sequence: Value, /) -> Value:
        own_class(space, cls, reversed)
        sequence = sequence.force()
        if space.host_lookup(sequence.cls, "__reversed__") is not None:
            slot = space.special(sequence, "__reversed__")
            if slot is not None:
                return space.call(slot, [sequence], {})
            if space.special(sequence, "__getitem__") is not None and not issubclass(sequence.cls, dict):
                return ReversedValue(sequence, space.int_(space.len(sequence)) - 1)
        raise space.error(TypeError, f"'{sequence.cls.__name__}' object is not reversible")

    def advance(self, space: Space) -> Value | None:
        if self.index < 0:
            return None
        space.touch(self)
        try:
            item = space.getitem(self.sequence, Constant(self.index))
        except Raised as e:
            if not issubclass(e.value.cls, (IndexError, StopIteration)):
                raise
            self.index = -1
            return None
        self.index -= 1
        return item

    def made(self, writer: Writer) -> str:
        return "reversed(())" if self.index < 0 else f"reversed({writer.expr(self.sequence)})"

    def reconstruct(self, writer: Writer) -> str:
        name = super().reconstruct(writer)
        if self.source is None and self.index >= 0:
            writer.line(f"{name}.__setstate__({self.index})")
        return name


@stream(type(iter(int, 1)))
class CallableIterator(Stream):
    """`iter(callable, sentinel)`."""

    __slots__ = ("done", "function", "sentinel")

    def __init__(self, function: Value, sentinel: Value) -> None:
        super().__init__(type(iter(int, 1)))
        self.function = function
        self.sentinel = sentinel
        self.done = False

    def advance(self, space: Space) -> Value | None:
        if self.done:
            return None
        try:
            result = space.call(self.function, [], {})
            if not space.equal(self.sentinel, result):
                return result
        except Raised as e:
            if not issubclass(e.value.cls, StopIteration):
                raise
        space.touch(self)
        self.done = True
        self.function = self.sentinel = NONE
        return None

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        if not self.done:
            parts = f"{writer.expr(self.function)}, {writer.expr(self.sentinel)}"
            return str(writer.assign("iterator", f"iter({parts})"))
        name = str(writer.assign("iterator", "iter(int, 0)"))
        writer.line(f"next({name}, None)")
        return name
