"""Iterators over sequences, and what all iterator types written in C have in common.

An iterator that existed before the trace is read without disturbing it, and advanced for real after the graph.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from types import WrapperDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from stator import errors
from stator._core import exchange
from stator.guards.guard import Equals
from stator.guards.source import CallSource
from stator.host.version_facts import LIST_ITERATORS_END_BELOW
from stator.models.classes.instance import fill, held_attributes, slot_effects
from stator.space.protocol import MODELS, NONE, NOT_IMPLEMENTED, builtin, models
from stator.space.value import Constant, ExtensibleValue, NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stator.guards.source import Source
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = [
    "BytesIterator",
    "IteratorValue",
    "ListIterator",
    "ListReverseIterator",
    "PositionIterator",
    "SequenceIterator",
    "StrIterator",
    "TupleIterator",
    "advance",
    "iterator_type",
    "reduction",
]

I = TypeVar("I", bound="type[IteratorValue]")  # noqa: E741


# -- what generated code and guards call ------------------------------------------------------------------------------


def advanced(writer: Writer, expression: str, steps: int) -> str:
    """An iterator made by the expression, some steps on."""
    name = writer.assign("iterator", expression)
    if steps:
        writer.line(f"{writer.const(advance)}({name}, {steps})")
    return name


def over_changed(writer: Writer, expression: str, steps: int) -> str:
    """An iterator made by the expression, some steps on, over a container that gets its contents later than it."""
    name = writer.assign("iterator", expression)
    writer.late.append(f"{writer.const(settle)}({name}, {expression}, {steps})")
    return name


def broken(writer: Writer, container: str, iterate: Callable[[str], str], change: str) -> str:
    """An iterator whose next step says that its container has changed: over another, changed for the purpose."""
    other = writer.assign("container", container)
    iterator = writer.assign("iterator", iterate(other))
    writer.line(f"{other}{change}")
    return iterator


def settle(iterator: Iterator[Any], other: Iterator[Any], steps: int) -> None:
    """An iterator goes on from where another, made when the container was as it is, is after some steps."""
    advance(other, steps)
    exchange(iterator, other)


def advance(iterator: Iterator[Any], steps: int) -> None:
    """Take that many steps; one more than there are exhausts the iterator."""
    cls: Any = type(iterator)
    if type(cls.__iter__) is type(cls.__next__) is WrapperDescriptorType:
        next(islice(iterator, steps, steps), None)
        return
    step = vars(native(cls))["__next__"]  # a subclass of the program's may do otherwise
    with contextlib.suppress(StopIteration):
        for _ in range(steps):
            step(iterator)


def position(iterator: Any) -> int | None:
    """The position of a C iterator over a sequence, None where it is exhausted."""
    reduced = iterator.__reduce__()
    return reduced[2] if len(reduced) > 2 else None


def sequence(iterator: Any) -> Any:
    """What a C iterator over a sequence runs over."""
    return iterator.__reduce__()[1][0]


# -- the models -------------------------------------------------------------------------------------------------------


class IteratorValue(ExtensibleValue):
    """An iterator; subclasses say how it goes on. One that existed before the trace is opaque unless they say more."""

    __slots__ = ("slots", "steps")
    #: whether it ends with the StopIteration of the iterator it goes over, with its value: C code that leaves that set
    passes_stop: ClassVar[bool] = False

    def __init__(self, cls: type) -> None:
        self.cls = cls
        #: of an instance of a subclass: its `__dict__` and `__slots__`
        self._attrs: Any = None
        self.slots: dict[Any, Value | None] = {}
        self.source: Source | None = None
        self.host: Any = None
        #: steps taken in the trace by an iterator that existed before, to be taken for real
        self.steps = 0

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> Value:
        self = cls.__new__(cls)
        IteratorValue.__init__(self, space.guard_type(host, source))
        self.source, self.host = source, host
        return self

    def produce(self, space: Space) -> Value | None:
        """The next item, or None at the end."""
        raise NotImplementedError

    def next_value(self, space: Space) -> Value | None:
        """The next item, or None at the end."""
        if self.source is not None:
            self.open(space)
        try:
            found = self.produce(space)
        except Raised as e:
            if issubclass(e.value.cls, StopIteration):
                space.stopped_by(e.value)
                return None
            raise
        if found is None and not self.passes_stop:
            space.trace.ended_by = None
        return found

    def open(self, space: Space) -> None:
        """An iterator made outside is about to be advanced: look into it, or break."""
        raise Unsupported(errors.OpaqueIterator(f"a {self.cls.__name__} object"))

    def held(self) -> Iterable[Value]:
        return held_attributes(self)

    # -- the slots ----------------------------------------------------------------------------------------------------

    def tp_iter(self, space: Space) -> Value:
        return self

    def tp_next(self, space: Space) -> Value:
        if self.source is not None:
            self.open(space)
        if self.passes_stop:
            return space.passed_on(lambda: self.produce(space))
        found = self.produce(space)
        if found is None:
            raise space.error(StopIteration)
        return found

    def tp_reduce(self, space: Space) -> Value:
        self.warn_of_copies(space)
        if self.source is not None:
            self.open(space)
        return self.reduced(space)

    # -- generated code -----------------------------------------------------------------------------------------------

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        name = self.rebuilt(writer)
        if self._attrs is not None or self.slots:
            writer.name_value(self, name)
            fill(self, writer, name)
        return name

    def rebuilt(self, writer: Writer) -> str:
        """Emit the code that makes the iterator in its present state; returns the name it has there."""
        return writer.assign(self.cls.__name__.strip("_"), self.made(writer))

    def begin_call(self, writer: Writer) -> str:
        """The text that begins the call of the type: `enumerate(`, or for a subclass `enumerate.__new__(Sub, `."""
        base = native(self.cls)
        if base is self.cls:
            return f"{writer.const(base)}("
        return f"{writer.const(base)}.__new__({writer.const(self.cls)}, "

    def warn_of_copies(self, space: Space) -> None:
        """What is said where the type will not be copied or pickled in later versions."""

    def reduced(self, space: Space) -> Value:
        """What `__reduce__` gives, by which it is copied and pickled."""
        raise NotImplementedError

    def made(self, writer: Writer) -> str:
        """The expression that makes the iterator in its present state."""
        raise Unsupported(errors.NotReconstructible(self.describe()))

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        lines = [f"{writer.const(advance)}({writer.source(self.source)}, {self.steps})"] if self.steps else []
        return lines + slot_effects(self, writer)


def native(cls: type) -> type:
    """The type written in C that an iterator type of the program's derives from."""
    return next(base for base in cls.__mro__ if base in MODELS)


def reduction(space: Space, maker: Any, args: list[Value], *state: Value) -> Value:
    """What `__reduce__` gives: how an equal object is made."""
    made = space.class_value(maker) if isinstance(maker, type) else space.existing(maker)
    return space.new_tuple([made, space.new_tuple(args), *state])


def iterator_type(*hosts: type) -> Callable[[I], I]:
    """Class decorator: the class models these iterator types."""

    def decorate(value_class: I) -> I:
        inherited = ["tp_iter", "tp_next", "tp_length_hint", "tp_setstate"]
        if value_class.reduced is not IteratorValue.reduced:
            inherited.append("tp_reduce")
        return models(*hosts, inherited=inherited)(value_class)

    return decorate


def state_number(space: Space, state: Value) -> int:
    """`PyLong_AsSsize_t`, which asks for no `__index__`."""
    state = state.force()
    if not issubclass(state.cls, int):
        raise space.error(TypeError, "an integer is required")
    number = space.int_(state)
    if not -sys.maxsize - 1 <= number <= sys.maxsize:
        raise space.error(OverflowError, "Python int too large to convert to C ssize_t")
    return number


class PositionIterator(IteratorValue):
    """An iterator that is a sequence and a position in it; `target` is None once it is exhausted."""

    __slots__ = ("_read", "index", "target")

    host_type: ClassVar[Any]
    base: ClassVar[Any]
    step = 1
    #: what makes one, and what an exhausted one is said to be made of
    maker: ClassVar[Any] = iter
    exhausted_maker: ClassVar[Any] = iter
    empty: ClassVar[Any] = ()
    #: a negative position is the end, as in the list iterators of 3.13
    ends_below: ClassVar[bool] = False
    #: a step for real moves nothing else and runs no code of the program
    moves_alone: ClassVar[bool] = True

    def __init__(self, target: Value | None, index: int = 0) -> None:
        super().__init__(self.host_type)
        self.target = target
        self.index = index
        self._read = True

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> PositionIterator:
        self = super().from_host(space, host, source)
        assert isinstance(self, PositionIterator)
        self._read = False
        self.index = 0
        self.target = None
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Any) -> PositionIterator:
        at = position(host)
        return cls(None) if at is None else cls(space.fresh(sequence(host)), at)

    def open(self, space: Space) -> None:
        assert self.source is not None
        if self._read:
            return
        self._read = True
        at = position(self.host)
        space.trace.guard(Equals(CallSource(position, self.source, "position"), at))
        if at is not None:
            self.index = at
            self.target = space.wrap(sequence(self.host), CallSource(sequence, self.source, "sequence")).force()

    def fetch(self, space: Space, target: Value, index: int) -> Value | None:
        """The item at a position, None beyond the end."""
        raise NotImplementedError

    def produce(self, space: Space) -> Value | None:
        target = self.target
        if target is None:
            return None
        if self.source is not None and getattr(target, "changed", False):
            raise Unsupported(errors.OpaqueIterator(f"a {self.cls.__name__} whose list changes"))
        item = self.fetch(space, target, self.index) if self.index >= 0 else None
        space.mark_mutated(self)
        self.steps += 1
        if item is None:
            self.target = None
        else:
            self.index += self.step
        return item

    def remaining(self, space: Space, target: Value) -> int:
        """How many items are left."""
        return space.int_(space.len(target)) - self.index

    def tp_length_hint(self, space: Space) -> Value:
        if self.source is not None:
            self.open(space)
        return Constant(0 if self.target is None else max(self.remaining(space, self.target), 0))

    def reduced(self, space: Space) -> Value:
        if self.target is None or (self.ends_below and self.index < 0):
            return reduction(space, self.exhausted_maker, [space.fresh(self.empty)])
        return reduction(space, self.maker, [self.target], Constant(self.index))

    def tp_setstate(self, space: Space, state: Value, /) -> Value:
        index = state_number(space, state)
        if self.source is not None:
            raise Unsupported(errors.UnsupportedMethod(self.cls.__name__, "__setstate__"))
        if self.target is not None:
            space.mark_mutated(self)
            lowest = -1 if self.step < 0 or self.ends_below else 0
            self.index = min(max(index, lowest), space.int_(space.len(self.target)) - (self.step < 0))
        return NONE

    def rebuilt(self, writer: Writer) -> str:
        if self.target is None:
            return advanced(writer, self.exhausted(writer), 1)
        if getattr(self.target, "changed", False) and self.index + (self.step < 0) > len(self.target.host):  # type: ignore[attr-defined]
            # The position is set before the real list gets its new items.
            raise Unsupported(errors.NotReconstructible("an iterator beyond the end of a list that is still to grow"))
        name = writer.assign("iterator", self.begun(writer, writer.expr(self.target)))
        if self.index or self.step < 0:
            writer.line(f"{writer.const(native(self.cls))}.__setstate__({name}, {self.index})")
        return name

    def begun(self, writer: Writer, target: str) -> str:
        """The expression of a new iterator over the sequence."""
        assert self.target is not None
        base = self.base
        if self.target.cls is base:
            return f"iter({target})"
        return f"{writer.const(base)}.__iter__({target})"

    def exhausted(self, writer: Writer) -> str:
        """The expression of an iterator over nothing."""
        return f"iter({self.base()!r})"


class _ItemIterator(PositionIterator):
    """An iterator over a list or tuple."""

    __slots__ = ()

    def fetch(self, space: Space, target: Value, index: int) -> Value | None:
        return target.item(index)  # type: ignore[attr-defined, no-any-return]

    def next_value(self, space: Space) -> Value | None:
        target: Any = self.target
        if target is None or self.source is not None or self.index < 0:
            return super().next_value(space)
        item: Value | None = target.item(self.index)
        space.mark_mutated(self)
        if item is None:
            self.target = None
        else:
            self.index += 1
        return item


@iterator_type(type(iter([])))
class ListIterator(_ItemIterator):
    """`iter([])`: sees what happens to the list meanwhile."""

    __slots__ = ()
    host_type: ClassVar[Any] = type(iter([]))
    base = list
    empty: ClassVar[Any] = []
    ends_below: ClassVar[bool] = LIST_ITERATORS_END_BELOW


@iterator_type(type(iter(())))
class TupleIterator(_ItemIterator):
    """`iter(())`."""

    __slots__ = ()
    host_type: ClassVar[Any] = type(iter(()))
    base = tuple


@iterator_type(type(reversed([])))
class ListReverseIterator(PositionIterator):
    """`reversed([])`."""

    __slots__ = ()
    host_type: ClassVar[Any] = type(reversed([]))
    base = list
    maker: ClassVar[Any] = reversed
    exhausted_maker: ClassVar[Any] = reversed if LIST_ITERATORS_END_BELOW else iter
    empty: ClassVar[Any] = []
    ends_below: ClassVar[bool] = LIST_ITERATORS_END_BELOW
    step = -1

    def fetch(self, space: Space, target: Value, index: int) -> Value | None:
        return target.item(index)  # type: ignore[attr-defined, no-any-return]

    def remaining(self, space: Space, target: Value) -> int:
        return self.index + 1 if self.index < space.int_(space.len(target)) else 0

    def begun(self, writer: Writer, target: str) -> str:
        assert self.target is not None
        return f"reversed({target})" if self.target.cls is list else f"{writer.const(list)}.__reversed__({target})"

    def exhausted(self, writer: Writer) -> str:
        return "reversed([])"


class _TextIterator(PositionIterator):
    """An iterator over a known str or bytes."""

    __slots__ = ()

    def fetch(self, space: Space, target: Value, index: int) -> Value | None:
        try:
            text = target.as_host(space)
        except NotKnown:
            raise Unsupported(errors.UnsupportedMethod(target.cls.__name__, "__iter__")) from None
        if index >= len(text):
            return None
        return Constant(self.base.__getitem__(text, index))


@iterator_type(type(iter("")), type(iter("\u20ac")))
class StrIterator(_TextIterator):
    """`iter("")`."""

    __slots__ = ()
    host_type: ClassVar[Any] = type(iter(""))
    base = str
    empty: ClassVar[Any] = ""

    def __init__(self, target: Value | None, index: int = 0) -> None:
        super().__init__(target, index)
        # CPython has a type of its own for pure ASCII strings.
        host = getattr(target, "host", "")
        self.cls = type(iter(str.__str__(host))) if isinstance(host, str) else self.host_type


@iterator_type(type(iter(b"")))
class BytesIterator(_TextIterator):
    """`iter(b"")`."""

    __slots__ = ()
    host_type: ClassVar[Any] = type(iter(b""))
    base = bytes


@builtin(str.__iter__)
def str_iter(space: Space, text: Value, /) -> Value:
    return StrIterator(text.force())


@builtin(bytes.__iter__)
def bytes_iter(space: Space, data: Value, /) -> Value:
    return BytesIterator(data.force())


class _Indexed:
    def __getitem__(self, index: int) -> Any:
        raise IndexError


@iterator_type(type(iter(_Indexed())))
class SequenceIterator(IteratorValue):
    """The iterator over an object that has `__getitem__` alone."""

    __slots__ = ("index", "target")

    def __init__(self, target: Value) -> None:
        super().__init__(type(iter(_Indexed())))
        self.target: Value | None = target
        self.index = 0

    def produce(self, space: Space) -> Value | None:
        if self.target is None:
            return None
        if self.index == sys.maxsize:
            raise space.error(OverflowError, "iter index too large")
        try:
            item = space.getitem(self.target, Constant(self.index))
        except Raised as e:
            if not issubclass(e.value.cls, (IndexError, StopIteration)):
                raise
            space.mark_mutated(self)
            self.target = None
            return None
        space.mark_mutated(self)
        self.index += 1
        return item

    def tp_length_hint(self, space: Space) -> Value:
        if self.source is not None:
            self.open(space)
        if self.target is None:
            return Constant(0)
        if space.special(self.target.force(), "__len__") is None:
            return NOT_IMPLEMENTED
        left = space.int_(space.len(self.target)) - self.index
        return Constant(left) if left >= 0 else Constant(0)

    def reduced(self, space: Space) -> Value:
        if self.target is None:
            return reduction(space, iter, [space.new_tuple([])])
        return reduction(space, iter, [self.target], Constant(self.index))

    def tp_setstate(self, space: Space, state: Value, /) -> Value:
        index = state_number(space, state)
        if self.source is not None:
            self.open(space)
        if self.target is not None:
            space.mark_mutated(self)
            self.index = max(index, 0)
        return NONE

    def rebuilt(self, writer: Writer) -> str:
        if self.target is None:
            name = writer.assign("iterator", f"iter({writer.const(_Indexed)}())")
            writer.line(f"next({name}, None)")
            return name
        name = writer.assign("iterator", f"iter({writer.expr(self.target)})")
        if self.index:
            writer.line(f"{name}.__setstate__({self.index})")
        return name
