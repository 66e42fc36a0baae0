"""The builtin iterator types: `enumerate`, `zip`, `map`, `filter`, `reversed` and `iter(callable, sentinel)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from stator import errors
from stator.guards.guard import Equals, Length
from stator.guards.source import CallSource, ItemSource
from stator.models.iterators.iterator import IteratorValue, PositionIterator, iterator_type, reduction
from stator.space.attributes import MISSING
from stator.space.operands import known_host
from stator.space.protocol import FALSE, NONE, TRUE
from stator.space.value import Constant, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["CallableIterator", "own_class"]

_ONE = Constant(1)


def own_class(space: Space, cls: Value) -> type:
    """The class to make an instance of: the builtin type, or one derived from it."""
    owner: type = known_host(space, cls, "__new__")
    if space.host_lookup(owner, "__del__") is not MISSING:
        raise Unsupported(errors.LifetimeObserved(f"the finaliser of class {owner.__name__}"))
    return owner


# -- what guards call: the parts of an iterator that existed before the trace -----------------------------------------


def parts_of(iterator: Any) -> tuple[Any, ...]:
    """What a `map`, `filter`, `zip` or `enumerate` was made of."""
    parts: tuple[Any, ...] = iterator.__reduce__()[1]
    return parts


def strictness(iterator: Any) -> bool:
    """Whether a `zip` is strict."""
    return len(iterator.__reduce__()) > 2


def next_number(iterator: Any) -> int:
    """The number that an `enumerate` gives to the next item."""
    number: int = iterator.__reduce__()[1][1]
    return number


class _Composed(IteratorValue):
    """An iterator with no state but that of the iterators (and functions) it is made of."""

    __slots__ = ("_opened",)

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        self._opened = True

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> Value:
        self: Any = super().from_host(space, host, source)
        self._opened = False
        return self  # type: ignore[no-any-return]

    def open(self, space: Space) -> None:
        if self._opened:
            return
        self._opened = True
        assert self.source is not None
        source = CallSource(parts_of, self.source, "parts_of")
        parts = parts_of(self.host)
        space.trace.guard(Length(source, len(parts)))
        self.adopt(space, [space.wrap(part, ItemSource(source, i)).force() for i, part in enumerate(parts)])

    def adopt(self, space: Space, parts: list[Value]) -> None:
        """Take the parts of an existing iterator."""
        raise NotImplementedError


def movers(space: Space, iterator: Value) -> list[Any]:
    """The existing iterators that stepping this one for real moves; a break where more than that would happen."""
    if getattr(iterator, "moves_alone", False) and iterator.source is not None:
        iterator.open(space)  # type: ignore[attr-defined]
        return [iterator]
    if isinstance(iterator, ZipValue) and iterator.source is not None:
        iterator.open(space)
        return [mover for part in iterator.iterators for mover in movers(space, part)]
    raise Unsupported(errors.OpaqueIterator(f"an enumerate object over {iterator.describe()}"))


@iterator_type(enumerate)
class EnumerateValue(_Composed):
    """`enumerate(iterable, start)`. An existing one counts, so its steps are taken for real."""

    __slots__ = ("count", "iterator", "movers")
    passes_stop = True

    def __init__(self, cls: type, iterator: Value, count: Value) -> None:
        super().__init__(cls)
        self.iterator = iterator
        self.count = count
        self.movers: list[Any] = []

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, start: Value = Constant(0)) -> Value:  # noqa: B008 (immutable)
        owner, count = own_class(space, cls), space.index(start)
        return EnumerateValue(owner, space.iter(iterable), count)

    def open(self, space: Space) -> None:
        if not self._opened:
            super().open(space)
            self.movers = movers(space, self.iterator)

    def adopt(self, space: Space, parts: list[Value]) -> None:
        assert self.source is not None
        number = next_number(self.host)
        space.trace.guard(Equals(CallSource(next_number, self.source, "next_number"), number))
        self.iterator, self.count = parts[0], Constant(number)

    def produce(self, space: Space) -> Value | None:
        if self.movers:
            item = self._step_for_real(space)
        else:
            item = space.next(self.iterator)
        space.mark_mutated(self)
        self.steps += 1
        if item is None:
            return None
        count = self.count
        if type(count) is Constant and count.cls is int:
            self.count = Constant(count.host + 1)
        else:
            self.count = space.binary("+", count, _ONE)
        return space.new_tuple([count, item])

    def _step_for_real(self, space: Space) -> Value | None:
        """A step of an existing one: taking it after the graph will move what it iterates over as well."""
        before = [mover.steps for mover in self.movers]
        item = space.next(self.iterator)
        for mover, steps in zip(self.movers, before, strict=True):
            mover.steps = steps
        return item

    def reduced(self, space: Space) -> Value:
        return reduction(space, self.cls, [self.iterator, self.count])

    def made(self, writer: Writer) -> str:
        return f"{self.begin_call(writer)}{writer.expr(self.iterator)}, {writer.expr(self.count)})"


@iterator_type(zip)
class ZipValue(_Composed):
    """`zip(*iterables, strict=…)`."""

    __slots__ = ("iterators", "strict")

    def __init__(self, cls: type, iterators: list[Value], strict: bool) -> None:
        super().__init__(cls)
        self.iterators = iterators
        self.strict = strict

    @property
    def passes_stop(self) -> bool:  # type: ignore[override]
        """What ends a strict one is looked at, and dropped."""
        return not self.strict

    @staticmethod
    def tp_new(space: Space, cls: Value, *iterables: Value, strict: Value = FALSE) -> Value:
        owner, exact = own_class(space, cls), space.truth(strict)
        return ZipValue(owner, [space.iter(iterable) for iterable in iterables], exact)

    def adopt(self, space: Space, parts: list[Value]) -> None:
        assert self.source is not None
        self.strict = strictness(self.host)
        space.trace.guard(Equals(CallSource(strictness, self.source, "strictness"), self.strict))
        self.iterators = parts

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

    def reduced(self, space: Space) -> Value:
        return reduction(space, self.cls, list(self.iterators), *[TRUE] * self.strict)

    def tp_setstate(self, space: Space, state: Value, /) -> Value:
        strict = space.truth(state)
        if self.source is not None:
            raise Unsupported(errors.UnsupportedMethod("zip", "__setstate__"))
        space.mark_mutated(self)
        self.strict = strict
        return NONE

    def made(self, writer: Writer) -> str:
        parts = [writer.expr(iterator) for iterator in self.iterators]
        return f"{self.begin_call(writer)}{', '.join(parts + ['strict=True'] * self.strict)})"


def _up_to(index: int) -> str:
    return " 1" if index == 1 else f"s 1-{index}"


@iterator_type(map)
class MapValue(_Composed):
    """`map(function, *iterables)`."""

    __slots__ = ("function", "iterators")
    passes_stop = True

    def __init__(self, cls: type, function: Value, iterators: list[Value]) -> None:
        super().__init__(cls)
        self.function = function
        self.iterators = iterators

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, iterable: Value, /, *iterables: Value) -> Value:
        return MapValue(own_class(space, cls), function, [space.iter(each) for each in (iterable, *iterables)])

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

    def reduced(self, space: Space) -> Value:
        return reduction(space, self.cls, [self.function, *self.iterators])

    def made(self, writer: Writer) -> str:
        return f"{self.begin_call(writer)}{', '.join(map(writer.expr, [self.function, *self.iterators]))})"


@iterator_type(filter)
class FilterValue(_Composed):
    """`filter(predicate, iterable)`."""

    __slots__ = ("iterator", "predicate")
    passes_stop = True

    def __init__(self, cls: type, predicate: Value, iterator: Value) -> None:
        super().__init__(cls)
        self.predicate = predicate
        self.iterator = iterator

    @staticmethod
    def tp_new(space: Space, cls: Value, predicate: Value, iterable: Value, /) -> Value:
        return FilterValue(own_class(space, cls), predicate, space.iter(iterable))

    def adopt(self, space: Space, parts: list[Value]) -> None:
        self.predicate, self.iterator = parts

    def produce(self, space: Space) -> Value | None:
        chosen = space.identity(self.predicate)
        plain = chosen is None or chosen is bool
        while (item := space.next(self.iterator)) is not None:
            if space.truth(item if plain else space.call(self.predicate, [item], {})):
                return item
        return None

    def reduced(self, space: Space) -> Value:
        return reduction(space, self.cls, [self.predicate, self.iterator])

    def made(self, writer: Writer) -> str:
        return f"{self.begin_call(writer)}{writer.expr(self.predicate)}, {writer.expr(self.iterator)})"


@iterator_type(reversed)
class ReversedValue(PositionIterator):
    """`reversed(sequence)`, of a sequence that has no `__reversed__`."""

    __slots__ = ()

    host_type = reversed
    base = tuple
    maker: ClassVar[Any] = reversed
    exhausted_maker: ClassVar[Any] = reversed
    step = -1

    @staticmethod
    def tp_new(space: Space, cls: Value, sequence: Value, /) -> Value:
        owner, sequence = own_class(space, cls), sequence.force()
        if space.host_lookup(sequence.cls, "__reversed__") is not None:
            slot = space.special(sequence, "__reversed__")
            if slot is not None:
                return space.call(slot, [sequence], {})
            if space.special(sequence, "__getitem__") is not None and not issubclass(sequence.cls, dict):
                made = ReversedValue(sequence, space.int_(space.len(sequence)) - 1)
                made.cls = owner
                return made
        raise space.error(TypeError, f"'{sequence.type_name(space)}' object is not reversible")

    def fetch(self, space: Space, target: Value, index: int) -> Value | None:
        if self.source is not None and target.cls not in (tuple, str, bytes):
            # Its items are fetched by the program's own code, which must not run again for real.
            raise Unsupported(errors.OpaqueIterator(f"reversed() of {target.describe()}"))
        try:
            return space.getitem(target, Constant(index))
        except Raised as e:
            if not issubclass(e.value.cls, (IndexError, StopIteration)):
                raise
            return None

    def remaining(self, space: Space, target: Value) -> int:
        left = self.index + 1
        return left if left <= space.int_(space.len(target)) else 0

    def begun(self, writer: Writer, target: str) -> str:
        if self.target is None or self.target.cls in (tuple, str, bytes):
            return f"{self.begin_call(writer)}{target})"
        raise Unsupported(errors.NotReconstructible(f"reversed() of {self.describe()}"))

    def exhausted(self, writer: Writer) -> str:
        return f"{self.begin_call(writer)}())"


@iterator_type(type(iter(int, 1)))
class CallableIterator(IteratorValue):
    """`iter(callable, sentinel)`."""

    __slots__ = ("done", "function", "sentinel")

    def __init__(self, function: Value, sentinel: Value) -> None:
        super().__init__(type(iter(int, 1)))
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
            if not issubclass(e.value.cls, StopIteration):
                raise
        space.mark_mutated(self)
        self.done = True
        self.function = self.sentinel = NONE
        return None

    def reduced(self, space: Space) -> Value:
        parts = [space.new_tuple([])] if self.done else [self.function, self.sentinel]
        return reduction(space, iter, parts)

    def rebuilt(self, writer: Writer) -> str:
        if not self.done:
            parts = f"{writer.expr(self.function)}, {writer.expr(self.sentinel)}"
            return str(writer.assign("iterator", f"iter({parts})"))
        name = str(writer.assign("iterator", "iter(int, 0)"))
        writer.line(f"next({name}, None)")
        return name
