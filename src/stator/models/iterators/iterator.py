"""Iterators over sequences, and what all iterator types written in C have in common.

An iterator that existed before the trace is read without disturbing it, and advanced for real after the graph.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from types import WrapperDescriptorType
from typing import Any, ClassVar, Self, TypeVar

from stator import errors
from stator.guards.guard import Equals, Rounds
from stator.guards.raw import raw_length
from stator.guards.source import CallSource, Source
from stator.host.version_facts import LIST_ITERATORS_END_BELOW
from stator.models.classes.instance import fill, held_attributes, slot_effects
from stator.space.attributes import MISSING
from stator.space.facts import expect_others
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import known_host
from stator.space.protocol import MODELS, NONE, NOT_IMPLEMENTED, builtin, models
from stator.space.space import Space
from stator.space.value import Constant, ExtensibleValue, NotKnown, Raised, Unsupported, Value

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
    "item_at",
    "iterator_type",
    "native",
    "own_class",
    "reduction",
    "state_number",
]

I = TypeVar("I", bound="type[IteratorValue]")  # noqa: E741


# -- what generated code and guards call ------------------------------------------------------------------------------


def advanced(writer: Writer, expression: str, steps: int) -> str:
    """An iterator made by the expression, some steps on."""
    name = writer.assign("iterator", expression)
    if steps:
        writer.line(f"{writer.const(advance)}({name}, {steps})")
    return name


def advance(iterator: Iterator[Host], steps: int) -> None:
    """Take that many steps; one more than there are exhausts the iterator."""
    cls: Host = type(iterator)
    if type(cls.__iter__) is type(cls.__next__) is WrapperDescriptorType:
        next(islice(iterator, steps, steps), None)
        return
    step = vars(native(cls))["__next__"]  # a subclass of the program's may do otherwise
    with contextlib.suppress(StopIteration):
        for _ in range(steps):
            step(iterator)


def position(iterator: Host) -> int | None:
    """The position of a C iterator over a sequence, None where it is exhausted."""
    reduced = iterator.__reduce__()
    return reduced[2] if len(reduced) > 2 else None


def sequence(iterator: Host) -> Host:
    """What a C iterator over a sequence runs over."""
    return iterator.__reduce__()[1][0]


def has_item(iterator: Host) -> bool:
    """Whether an iterator over a list or tuple has something to give."""
    at = position(iterator)
    return at is not None and 0 <= at < raw_length(sequence(iterator))


def is_at_end(iterator: Host) -> bool:
    """Whether it has nothing to give, and never will have when it has been asked."""
    return not has_item(iterator)


def next_item(iterator: Host) -> Host:
    """What an iterator over a list or tuple gives next."""
    numbers = sequence(iterator)
    kind: Host = list if isinstance(numbers, list) else tuple
    return kind.__getitem__(numbers, position(iterator))


# -- the models -------------------------------------------------------------------------------------------------------


def own_class(space: Space, cls: Value) -> type:
    """The class to make an instance of: the builtin type, or one derived from it."""
    owner: type = known_host(space, cls, "__new__")
    if space.host_lookup(owner, "__del__") is not MISSING:
        raise Unsupported(errors.NewFinalizer(owner.__name__))
    return owner


def reduction(space: Space, maker: Host, args: list[Value], *state: Value) -> Value:
    """What `__reduce__` gives: how an equal object is made."""
    made = space.class_value(maker) if isinstance(maker, type) else space.existing(maker)
    return space.new_tuple([made, space.new_tuple(args), *state])


class IteratorValue(ExtensibleValue):
    """An iterator. A subclass says how it goes on (`produce`), and of which `arguments` its type makes an equal one.

    One that existed before the trace is opaque unless the subclass can `look_into` it.
    """

    __slots__ = ("opened", "slots", "steps")
    #: the type that is modelled; where there are several, the first
    host_type: ClassVar[type]
    #: their own `__iter__`
    plain_iters: ClassVar[tuple[object, ...]]
    #: whether it ends with the StopIteration of the iterator it goes over, with its value: C code that leaves that set
    passes_stop: ClassVar[bool] = False
    #: whether a step for real moves nothing else and runs no code of the program
    moves_alone: ClassVar[bool] = False

    def __init__(self, cls: type | None = None) -> None:
        super().__init__(cls or self.host_type)
        #: of an instance of a subclass: its `__slots__`
        self.slots: dict[Host, Value | None] = {}
        #: steps taken in the trace by an iterator that existed before, to be taken for real
        self.steps = 0
        #: whether it is known what it goes over
        self.opened = True

    @classmethod
    def of(cls, own: type, **state: object) -> Self:
        """An instance of the type, or of a class derived from it, in this state."""
        self = cls.__new__(cls)
        IteratorValue.__init__(self, own)
        for name, part in state.items():
            setattr(self, name, part)
        return self

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Self:
        return cls.of(space.guard_type(host, source), source=source, host=host, opened=False)

    def produce(self, space: Space) -> Value | None:
        """The next item, or None at the end."""
        raise NotImplementedError

    def next_value(self, space: Space) -> Value | None:
        """The next item, or None at the end."""
        try:
            found = self.step_on(space)
        except Raised as e:
            if e.value.isa(StopIteration):
                space.stopped_by(e.value)
                return None
            raise
        if found is None and not self.passes_stop:
            space.ended_by = None
        return found

    def step_on(self, space: Space) -> Value | None:
        """The next item, or None at the end; the first of one that existed before may be all that is looked at."""
        first, known = self._first(space)
        return first if known else self.produce(space)

    def _first(self, space: Space) -> tuple[Value | None, bool]:
        """The first item of an existing iterator, and whether it could be had alone; it is opened if it could not."""
        if self.opened:
            return None, False
        first = self.peek(space)
        if first is not None or self.ends(space):
            return first, True
        self.open(space)
        return None, False

    def peek(self, space: Space) -> Value | None:
        """The next item of an existing iterator, without asking where it stands: None where that cannot be done.

        So what goes on in the middle of a loop, up to a break in the next round, goes on alike in each round.
        """
        return None

    def ends(self, space: Space) -> bool:
        """Step an existing iterator that has nothing to give, without asking where it stands; whether that was done."""
        return False

    def give_first(self, space: Space, has_item: Host, next_item: Host) -> Value:
        """The first step has been taken: there is an item, and what it is is read with these functions."""
        assert self.source is not None
        space.trace.guard(Rounds.of(self.source, has_item, goes_on=True))
        space.mark_mutated(self)
        self.steps = 1
        source = CallSource(next_item, self.source, "next_item")
        expect_others(space.trace, source)
        return space.wrap(next_item(self.host), source)

    def note_end(self, space: Space, is_at_end: Host) -> bool:
        """The first step has been taken, and nothing found, as this function says."""
        assert self.source is not None
        space.trace.guard(Rounds.of(self.source, is_at_end, goes_on=False))
        space.mark_mutated(self)
        self.opened, self.steps = True, 1
        return True

    def open(self, space: Space) -> None:
        """It is to be known what it goes over."""
        if not self.opened:
            self.look_into(space)
            self.opened = True

    def look_into(self, space: Space) -> None:
        """Find out what an iterator that existed before the trace goes over, or break."""
        raise Unsupported(errors.OpaqueIterator(f"a {self.cls.__name__} object"))

    def movers(self, space: Space) -> list[IteratorValue] | None:
        """The existing iterators that a step of this existing one moves for real, if it does no more than that."""
        return [self] if self.moves_alone else None

    def held(self) -> Iterable[Value]:
        return held_attributes(self)

    # -- slots and methods, of the types that have them ---------------------------------------------------------------

    def tp_iter(self, space: Space) -> Value:
        return self

    def tp_next(self, space: Space) -> Value:
        found, known = self._first(space)
        if not known:
            if self.passes_stop:
                return space.passed_on(lambda: self.produce(space))
            found = self.produce(space)
        if found is None:
            raise space.error(StopIteration)
        return found

    def tp_length_hint(self, space: Space) -> Value:
        self.open(space)
        return Constant(max(self.left(space), 0))

    def left(self, space: Space) -> int:
        """How many items are left."""
        raise Unsupported(errors.UnsupportedMethod(self.cls.__name__, "__length_hint__"))

    def tp_reduce(self, space: Space) -> Value:
        self.warn_of_copies(space)
        self.open(space)
        return self.reduced(space)

    def tp_setstate(self, space: Space, state: Value, /) -> Value:
        self.warn_of_copies(space)
        self.restore(space, state.force())
        space.mark_mutated(self)
        return NONE

    def restore(self, space: Space, state: Value) -> None:
        """Take the state that `__reduce__` gave of another; what is no such state is refused before anything is set."""
        raise self.without_state()

    def without_state(self) -> Unsupported:
        """`raise self.without_state()`: what `__setstate__` does here is not modelled."""
        return Unsupported(errors.UnsupportedMethod(self.cls.__name__, "__setstate__"))

    def warn_of_copies(self, space: Space) -> None:
        """What is said where the type will not be copied or pickled in later versions."""

    def reduced(self, space: Space) -> Value:
        """What `__reduce__` gives, by which it is copied and pickled."""
        return reduction(space, self.cls, self.arguments(space), *self.state(space))

    def arguments(self, space: Space) -> list[Value]:
        """What its type makes an iterator of that goes on as this one does."""
        raise Unsupported(errors.NotReconstructible(self.describe()))

    def state(self, space: Space) -> list[Value]:
        """What `__reduce__` gives beside: the argument of `__setstate__`, if any."""
        return []

    # -- generated code -----------------------------------------------------------------------------------------------

    def reconstruct(self, writer: Writer) -> str:
        name = super().reconstruct(writer)
        if self.source is None and (self._attrs is not None or self.slots):
            writer.name_value(self, name)
            fill(self, writer, name)
        return name

    def rebuilt(self, writer: Writer) -> str:
        return writer.assign(self.cls.__name__.strip("_"), self.made(writer))

    def made(self, writer: Writer) -> str:
        """The expression that makes the iterator in its present state."""
        return self.call_text(writer, *map(writer.expr, self.arguments(writer.trace.space)))

    def call_text(self, writer: Writer, *args: str) -> str:
        """The text of a call of the type: `enumerate(…)`, or for a subclass `enumerate.__new__(Sub, …)`."""
        base = native(self.cls)
        if base is self.cls:
            return f"{writer.const(base)}({', '.join(args)})"
        return f"{writer.const(base)}.__new__({', '.join((writer.const(self.cls), *args))})"

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        lines = [f"{writer.const(self.advancing)}({writer.source(self.source)}, {self.steps})"] if self.steps else []
        return lines + slot_effects(self, writer)

    #: what takes steps for real
    advancing: ClassVar[Host] = staticmethod(advance)


def native(cls: type) -> type:
    """The type written in C that an iterator type of the program's derives from."""
    return next(base for base in cls.__mro__ if base in MODELS)


#: slots of IteratorValue, with the methods of which a subclass has one where it models the slot
_SLOTS_BY = {"tp_length_hint": ("left",), "tp_reduce": ("reduced", "arguments"), "tp_setstate": ("restore",)}


def iterator_type(*hosts: type) -> Callable[[I], I]:
    """Class decorator: the class models these iterator types."""

    def decorate(value_class: I) -> I:
        value_class.host_type = hosts[0]
        value_class.plain_iters = tuple(host.__iter__ for host in hosts)  # type: ignore[attr-defined]
        for slot, answers in _SLOTS_BY.items():
            if all(getattr(value_class, answer) is getattr(IteratorValue, answer) for answer in answers):
                setattr(value_class, slot, None)  # not modelled, though the type may have it
        return models(*hosts)(value_class)

    return decorate


def state_number(space: Space, state: Value) -> int:
    """`PyLong_AsSsize_t`, which asks for no `__index__`."""
    if not state.isa(int):
        raise space.error(TypeError, "an integer is required")
    number = space.int_(state)
    if not -sys.maxsize - 1 <= number <= sys.maxsize:
        raise space.error(OverflowError, "Python int too large to convert to C ssize_t")
    return number


class PositionIterator(IteratorValue):
    """An iterator that is a sequence and a position in it; `target` is None once it is exhausted."""

    __slots__ = ("index", "target")

    #: the type of the sequence
    base: ClassVar[Host]
    step = 1
    #: what makes one, and what an exhausted one is said to be made of
    maker: ClassVar[Host] = iter
    exhausted_maker: ClassVar[Host] = iter
    empty: ClassVar[Host] = ()
    #: a negative position is the end, as in the list iterators of 3.13
    ends_below: ClassVar[bool] = False
    moves_alone: ClassVar[bool] = True

    def __init__(self, target: Value | None, index: int = 0) -> None:
        super().__init__()
        self.target = target
        self.index = index

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Self:
        self = super().from_host(space, host, source)
        self.target, self.index = None, 0
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> PositionIterator:
        at = position(host)
        return cls(None) if at is None else cls(space.fresh(sequence(host)), at)

    def look_into(self, space: Space) -> None:
        assert self.source is not None
        at = position(self.host)
        space.trace.guard(Equals(CallSource(position, self.source, "position"), at))
        if at is not None:
            self.index = at + self.index * self.step  # it may have been stepped by then
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

    def left(self, space: Space) -> int:
        return 0 if self.target is None else space.int_(space.len(self.target)) - self.index

    def reduced(self, space: Space) -> Value:
        if self.target is None or (self.ends_below and self.index < 0):
            return reduction(space, self.exhausted_maker, [space.fresh(self.empty)])
        return reduction(space, self.maker, [self.target], Constant(self.index))

    def restore(self, space: Space, state: Value) -> None:
        index = state_number(space, state)
        if self.source is not None:
            raise self.without_state()
        if self.target is not None:
            lowest = -1 if self.step < 0 or self.ends_below else 0
            self.index = min(max(index, lowest), space.int_(space.len(self.target)) - (self.step < 0))

    def rebuilt(self, writer: Writer) -> str:
        if self.target is None:
            return advanced(writer, self.exhausted(writer), 1)
        name = writer.assign("iterator", self.begun(writer, writer.expr(self.target)))
        if self.index or self.step < 0:
            # A position beyond the end is taken for the end: it is set when the real list has its new items.
            grows = getattr(self.target, "changed", False) and self.index + (self.step < 0) > len(self.target.host)
            lines = writer.late if grows else writer.lines
            lines.append(f"{writer.const(native(self.cls))}.__setstate__({name}, {self.index})")
        return name

    def begun(self, writer: Writer, target: str) -> str:
        """The expression of a new iterator over the sequence."""
        assert self.target is not None
        return f"iter({target})" if self.target.cls is self.base else f"{writer.const(self.base)}.__iter__({target})"

    def exhausted(self, writer: Writer) -> str:
        """The expression of an iterator over nothing."""
        return f"iter({self.base()!r})"


class _ItemIterator(PositionIterator):
    """An iterator over a list or tuple."""

    __slots__ = ()

    def peek(self, space: Space) -> Value | None:
        if self.index or self.source is None or not has_item(self.host) or space.has_changed(sequence(self.host)):
            return None
        self.index = 1
        return self.give_first(space, has_item, next_item)

    def ends(self, space: Space) -> bool:
        if self.index or self.source is None or has_item(self.host) or space.has_changed(sequence(self.host)):
            return False
        return self.note_end(space, is_at_end)

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
            self.index += self.step
        return item


@iterator_type(type(iter([])))
class ListIterator(_ItemIterator):
    """`iter([])`: sees what happens to the list meanwhile."""

    __slots__ = ()
    base = list
    empty: ClassVar[Host] = []
    ends_below: ClassVar[bool] = LIST_ITERATORS_END_BELOW


@iterator_type(type(iter(())))
class TupleIterator(_ItemIterator):
    """`iter(())`."""

    __slots__ = ()
    base = tuple


@iterator_type(type(reversed([])))
class ListReverseIterator(_ItemIterator):
    """`reversed([])`."""

    __slots__ = ()
    base = list
    maker: ClassVar[Host] = reversed
    exhausted_maker: ClassVar[Host] = reversed if LIST_ITERATORS_END_BELOW else iter
    empty: ClassVar[Host] = []
    ends_below: ClassVar[bool] = LIST_ITERATORS_END_BELOW
    step = -1

    def left(self, space: Space) -> int:
        if self.target is None or self.index >= space.int_(space.len(self.target)):
            return 0
        return self.index + 1

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
    base = str
    empty: ClassVar[Host] = ""

    def __init__(self, target: Value | None, index: int = 0) -> None:
        super().__init__(target, index)
        # CPython has a type of its own for pure ASCII strings.
        host = getattr(target, "host", "")
        if isinstance(host, str):
            self.cls = type(iter(str.__str__(host)))


@iterator_type(type(iter(b"")))
class BytesIterator(_TextIterator):
    """`iter(b"")`."""

    __slots__ = ()
    base = bytes


@builtin(str.__iter__)
def str_iter(space: Space, text: Value, /) -> Value:
    return StrIterator(text.force())


@builtin(bytes.__iter__)
def bytes_iter(space: Space, data: Value, /) -> Value:
    return BytesIterator(data.force())


def item_at(space: Space, target: Value, index: int) -> Value | None:
    """`target[index]`, None where that says that there is no such item."""
    try:
        return space.getitem(target, Constant(index))
    except Raised as e:
        if not e.value.isa((IndexError, StopIteration)):
            raise
        return None


class _Indexed:
    def __getitem__(self, index: int) -> Host:
        raise IndexError


@iterator_type(type(iter(_Indexed())))
class SequenceIterator(PositionIterator):
    """The iterator over an object that has `__getitem__` alone."""

    __slots__ = ()
    moves_alone: ClassVar[bool] = False

    def look_into(self, space: Space) -> None:
        IteratorValue.look_into(self, space)

    def fetch(self, space: Space, target: Value, index: int) -> Value | None:
        if index == sys.maxsize:
            raise space.error(OverflowError, "iter index too large")
        return item_at(space, target, index)

    def tp_length_hint(self, space: Space) -> Value:
        self.open(space)
        if self.target is not None and space.special(self.target.force(), "__len__") is None:
            return NOT_IMPLEMENTED
        return super().tp_length_hint(space)

    def restore(self, space: Space, state: Value) -> None:
        index = state_number(space, state)
        self.open(space)
        self.index = max(index, 0)

    def begun(self, writer: Writer, target: str) -> str:
        return f"iter({target})"

    def exhausted(self, writer: Writer) -> str:
        return f"iter({writer.const(_Indexed)}())"
