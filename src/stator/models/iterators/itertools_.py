"""itertools: iterators over iterators. Those that hold a pool of items are in `combinatorics`, what few programs need
is in `rare/iterators`."""

from __future__ import annotations

import ast
import gc
import itertools
import re
import types
import warnings

from stator.guards.source import CallSource
from stator.host.version_facts import ITERTOOLS_ARE_COPIED, ITERTOOLS_COPIES_WARN
from stator.models.containers.sequence import MAXSIZE
from stator.models.iterators.iterator import (
    IteratorValue,
    advance,
    iterator_type,
    own_class,
    reduction,
    state_number,
)
from stator.space import facts
from stator.space.deferred import concatenated
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.protocol import NONE, TRUE, builtin
from stator.space.recursion import repr_piece
from stator.space.space import Space
from stator.space.value import Constant, Raised, Value

__all__ = ["ItertoolsIterator", "quietly"]

_ONE = Constant(1)
_ZERO = Constant(0)


def quietly(function: Host, *args: object) -> Host:
    """Call what 3.12 deprecates, for the program, which has heard of that already."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return _called_elsewhere(function, *args)


#: a warning is noted in the globals of whoever calls: not in those of a module, which the program may look at
_called_elsewhere = types.FunctionType((lambda function, *args: function(*args)).__code__, {"__name__": "stator.quiet"})


class ItertoolsIterator(IteratorValue):
    """What the types of itertools have in common."""

    __slots__ = ()

    def warn_of_copies(self, space: Space) -> None:
        if ITERTOOLS_COPIES_WARN:
            words = "Pickle, copy, and deepcopy support will be removed from itertools in Python 3.14."
            space.warn(DeprecationWarning, words)

    def state_parts(self, space: Space, state: Value) -> list[Value]:
        """The items of a state that must be a tuple."""
        if not state.isa(tuple):
            raise space.error(TypeError, "state is not a tuple")
        return [part.force() for part in space.unpack(state)]


# -- without end ------------------------------------------------------------------------------------------------------


def counts_plain_numbers(iterator: Host) -> bool:
    """Whether what it counts, and its step, are ints or floats: adding and showing them runs no code of the program."""
    held = [held for held in gc.get_referents(iterator) if held is not itertools.count]  # since 3.12 the type is one
    return all(type(number) in (int, float) for number in held)


def count_state(iterator: Host) -> tuple[Host, Host]:
    """The next number and the step. Since 3.14 nothing but its text tells them."""
    number, *step = re.split(r"[(,)]", itertools.count.__repr__(iterator))[1:-1]
    return ast.literal_eval(number), ast.literal_eval(step[0].strip()) if step else 1


def next_number(iterator: Host) -> Host:
    """What `itertools.count` gives next."""
    return count_state(iterator)[0]


def step_of(iterator: Host) -> Host:
    """What `itertools.count` adds each time."""
    return count_state(iterator)[1]


@iterator_type(itertools.count)
class Count(ItertoolsIterator):
    """`count(start, step)`."""

    __slots__ = ("number", "step")

    moves_alone = True
    number: Value
    step: Value

    @staticmethod
    def tp_new(space: Space, cls: Value, start: Value = _ZERO, step: Value = _ONE) -> Value:
        for number in (start.force(), step.force()):
            if not any(space.special(number, name) for name in ("__index__", "__float__", "__int__", "__complex__")):
                raise space.error(TypeError, "a number is required")
        return Count.of(own_class(space, cls), number=start, step=step)

    def look_into(self, space: Space) -> None:
        host, source = self.host, self.source
        assert source is not None
        if self.cls is not itertools.count or not facts.holds(space, self, counts_plain_numbers, "counts numbers"):
            return super().look_into(space)
        place = CallSource(next_number, source, "next")
        facts.expect_others(space.trace, place)
        self.number = space.wrap(next_number(host), place)
        self.step = Constant(facts.answer(space, self, step_of, "step_of"))
        return None

    def produce(self, space: Space) -> Value | None:
        number = self.number
        following = space.binary("+", number, self.step)
        space.mark_mutated(self)
        self.steps += 1
        self.number = following
        return number

    def tp_repr(self, space: Space) -> Value:
        self.open(space)
        end = () if self._counts_by_one(space) else (", ", repr_piece(space, self.step))
        return concatenated(f"{space.class_name(self.cls)}(", repr_piece(space, self.number), *end, ")")

    def _counts_by_one(self, space: Space) -> bool:
        step = space.known(self.step)
        return type(step) is int and step == 1

    def arguments(self, space: Space) -> list[Value]:
        quick = self._counts_by_one(space) and self.number.isa(int)
        return [self.number] if quick else [self.number, self.step]


@iterator_type(itertools.repeat)
class Repeat(ItertoolsIterator):
    """`repeat(object, times)`; `times` is None without end."""

    __slots__ = ("object", "times")

    object: Value
    times: int | None

    @staticmethod
    def tp_new(space: Space, cls: Value, object: Value, times: Value | None = None) -> Value:
        owner = own_class(space, cls)
        return Repeat.of(owner, object=object, times=None if times is None else max(space.int_(times), 0))

    def produce(self, space: Space) -> Value | None:
        if self.times is not None:
            if self.times == 0:
                return None
            space.mark_mutated(self)
            self.times -= 1
        return self.object

    def tp_repr(self, space: Space) -> Value:
        self.open(space)
        end = "" if self.times is None else f", {self.times}"
        pieces = [Constant(f"{space.class_name(self.cls)}("), space.repr(self.object), Constant(f"{end})")]
        return space.join_strings(pieces)

    def left(self, space: Space) -> int:
        if self.times is None:
            raise space.error(TypeError, "len() of unsized object")
        return self.times

    def arguments(self, space: Space) -> list[Value]:
        return [self.object] if self.times is None else [self.object, Constant(self.times)]


def resumed_cycle(cls: Host, iterator: Host, saved: Host, index: int | None, repeated: bool) -> Host:
    """A `cycle` in the middle of its work, for generated code."""
    if not ITERTOOLS_ARE_COPIED:
        made = itertools.cycle.__new__(cls, saved if index is not None else itertools.chain(saved, iterator))
        advance(made, len(saved) + (index or 0))
        return made
    if index is not None:
        iterator, repeated = iter(saved), True
        advance(iterator, index)
    made = itertools.cycle.__new__(cls, iterator)
    quietly(vars(itertools.cycle)["__setstate__"], made, (saved, int(repeated)))
    return made


@iterator_type(itertools.cycle)
class Cycle(ItertoolsIterator):
    """`cycle(iterable)`; `iterator` is None once the first pass is over."""

    __slots__ = ("index", "iterator", "repeated", "saved")

    index: int
    iterator: Value | None
    #: whether the items of the iterator are saved already
    repeated: bool
    #: a list, which `__reduce__` shows to the program
    saved: Host

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, /) -> Value:
        owner, iterator = own_class(space, cls), space.iter(iterable)
        return Cycle.of(owner, iterator=iterator, saved=space.new_list([]), repeated=False, index=0)

    def produce(self, space: Space) -> Value | None:
        if self.iterator is not None:
            item = space.next(self.iterator)
            space.mark_mutated(self)
            if item is not None:
                if not self.repeated:
                    space.call_builtin(list.append, [self.saved, item], {})
                return item
            self.iterator = None
        item = self.saved.item(self.index)
        if item is None:
            return None
        space.mark_mutated(self)
        self.index = (self.index + 1) % space.int_(space.len(self.saved))
        return item  # type: ignore[no-any-return]

    def reduced(self, space: Space) -> Value:
        if self.iterator is not None:
            state = [self.saved, Constant(self.repeated)]
            return reduction(space, self.cls, [self.iterator], space.new_tuple(state))
        iterator = space.iter(self.saved)
        if self.index:
            space.call_method(iterator, "__setstate__", Constant(self.index))
        return reduction(space, self.cls, [iterator], space.new_tuple([self.saved, TRUE]))

    def restore(self, space: Space, state: Value) -> None:
        parts = self.state_parts(space, state)
        if self.source is not None or len(parts) != 2 or parts[0].cls is not list or not parts[1].isa(int):
            raise self.without_state()
        self.saved, self.repeated, self.index = parts[0], space.truth(parts[1]), 0

    def rebuilt(self, writer: Writer) -> str:
        if self.iterator is not None and not self.repeated and not self.saved.items:
            return writer.assign("iterator", self.call_text(writer, writer.expr(self.iterator)))
        rest = "None" if self.iterator is None else writer.expr(self.iterator)
        index = self.index if self.iterator is None else None
        parts = f"{writer.const(self.cls)}, {rest}, {writer.expr(self.saved)}, {index}, {self.repeated}"
        return writer.assign("iterator", f"{writer.const(resumed_cycle)}({parts})")


# -- one after another ------------------------------------------------------------------------------------------------


def chained(cls: type, iterables: Host) -> Host:
    """`cls.from_iterable(iterables)`, past what a subclass makes of it."""
    return vars(itertools.chain)["from_iterable"].__get__(None, cls)(iterables)


@iterator_type(itertools.chain)
class Chain(ItertoolsIterator):
    """`chain(*iterables)`: `rest` iterates over the iterables, `active` over the present one."""

    __slots__ = ("active", "rest")

    rest: Value | None
    active: Value | None

    @staticmethod
    def tp_new(space: Space, cls: Value, *iterables: Value) -> Value:
        return chain_from_iterable(space, cls, space.new_tuple(list(iterables)))

    def produce(self, space: Space) -> Value | None:
        while self.rest is not None:
            if self.active is None:
                following = space.next(self.rest)
                space.mark_mutated(self)
                if following is None:
                    break
                try:
                    self.active = space.iter(following)
                except Raised:
                    self.rest = None
                    raise
            item = space.next(self.active)
            if item is not None:
                return item
            space.mark_mutated(self)
            self.active = None
        self.rest = None
        return None

    def arguments(self, space: Space) -> list[Value]:
        return []

    def state(self, space: Space) -> list[Value]:
        parts = [part for part in (self.rest, self.active) if part is not None]
        return [] if self.rest is None else [space.new_tuple(parts)]

    def restore(self, space: Space, state: Value) -> None:
        parts = self.state_parts(space, state)
        if self.source is not None or not 1 <= len(parts) <= 2:
            raise self.without_state()
        if any(space.special(part, "__next__") is None for part in parts):
            raise space.error(TypeError, "Arguments must be iterators.")
        self.rest, self.active = parts[0], parts[1] if len(parts) == 2 else None

    def made(self, writer: Writer) -> str:
        if self.rest is None:
            return super().made(writer)
        begin, rest = f"{writer.const(chained)}({writer.const(self.cls)}, ", writer.expr(self.rest)
        if self.active is None:
            return f"{begin}{rest})"
        return f"{begin}{writer.const(itertools.chain)}([{writer.expr(self.active)}], {rest}))"


@builtin(itertools.chain.__dict__["from_iterable"])
def chain_from_iterable(space: Space, cls: Value, iterable: Value, /) -> Value:
    return Chain.of(own_class(space, cls), rest=space.iter(iterable), active=None)


@iterator_type(itertools.islice)
class ISlice(ItertoolsIterator):
    """`islice(iterable, start, stop, step)`: `taken` items so far, the next wanted one is number `wanted`."""

    __slots__ = ("iterator", "step", "stop", "taken", "wanted")
    passes_stop = True

    iterator: Value | None
    step: int
    stop: int | None
    taken: int
    wanted: int

    @staticmethod
    def tp_new(
        space: Space, cls: Value, iterable: Value, first: Value, stop: Value | None = None, step: Value = NONE, /
    ) -> Value:
        start: Value = first
        if stop is None:
            start, stop = NONE, first
        last = _slice_part(space, stop, None, "Stop argument", "must be None or an integer: 0 <= x <= sys.maxsize.")
        begin = _slice_part(space, start, 0, "Indices", "must be None or an integer: 0 <= x <= sys.maxsize.")
        stride = _slice_part(space, step, 1, "Step", "must be a positive integer or None.", 1)
        owner, iterator = own_class(space, cls), space.iter(iterable)
        return ISlice.of(owner, iterator=iterator, taken=0, wanted=begin or 0, stop=last, step=stride or 1)

    def produce(self, space: Space) -> Value | None:
        if self.iterator is None:
            return None
        while self.taken < self.wanted:
            if space.next(self.iterator) is None:
                return self._end(space)
            space.mark_mutated(self)
            self.taken += 1
        if self.stop is not None and self.taken >= self.stop:
            return self._end(space)
        item = space.next(self.iterator)
        if item is None:
            return self._end(space)
        space.mark_mutated(self)
        self.taken += 1
        self.wanted += self.step
        if self.stop is not None and self.wanted > self.stop:
            self.wanted = self.stop
        return item

    def _end(self, space: Space) -> Value | None:
        space.mark_mutated(self)
        self.iterator = None
        return None

    def arguments(self, space: Space) -> list[Value]:
        if self.iterator is None:
            return [space.iter(space.new_list([])), _ZERO]
        return [self.iterator, *map(space.fresh, (self.wanted, self.stop, self.step))]

    def state(self, space: Space) -> list[Value]:
        return [_ZERO if self.iterator is None else Constant(self.taken)]

    def restore(self, space: Space, state: Value) -> None:
        count = state_number(space, state)
        if self.source is not None or not 0 <= count <= self.wanted:
            raise self.without_state()
        self.taken = count

    def made(self, writer: Writer) -> str:
        if self.iterator is None:
            return self.call_text(writer, "()", "0")
        stop = None if self.stop is None else max(self.stop - self.taken, 0)
        return self.call_text(
            writer, writer.expr(self.iterator), str(self.wanted - self.taken), str(stop), str(self.step)
        )


def _slice_part(space: Space, value: Value, default: int | None, what: str, words: str, least: int = 0) -> int | None:
    value = value.force()
    if value.is_none():
        return default
    try:
        number = space.int_(value)
    except Raised:
        number = -1
    if not least <= number <= MAXSIZE:
        what = "Indices" if what == "Stop argument" and number < -1 else what
        raise space.error(ValueError, f"{what} for islice() {words}")
    return number
