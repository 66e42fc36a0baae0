"""itertools: iterators that ask a function about each item of one other."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from stator.models.iterators.builtins_iter import own_class
from stator.models.iterators.iterator import advanced, iterator_type, reduction
from stator.models.iterators.itertools_ import ItertoolsIterator, is_none
from stator.space.operands import refuse
from stator.space.protocol import NONE
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Writer
    from stator.space.space import Space


class _OverOne(ItertoolsIterator):
    """An iterator with a function and one iterator."""

    __slots__ = ("function", "iterator")

    function: Value
    iterator: Value

    @classmethod
    def over(cls, space: Space, host: Value, function: Value, iterable: Value) -> Value:
        """A new one."""
        self = cls(own_class(space, host))
        self.iterator = space.iter(iterable)
        self.function = function
        return self

    def reduced(self, space: Space) -> Value:
        return reduction(space, self.cls, [self.function, self.iterator])

    def made(self, writer: Writer) -> str:
        return f"{self.begin_call(writer)}{writer.expr(self.function)}, {writer.expr(self.iterator)})"


class _Switching(_OverOne):
    """One whose predicate says, but once, that the rest is treated otherwise."""

    __slots__ = ("switched",)

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        self.switched = False

    def reduced(self, space: Space) -> Value:
        return reduction(space, self.cls, [self.function, self.iterator], Constant(int(self.switched)))

    def tp_setstate(self, space: Space, state: Value, /) -> Value:
        self.warn_of_copies(space)
        if self.source is not None:
            raise refuse(f"itertools.{self.cls.__name__}.__setstate__")
        space.mark_mutated(self)
        self.switched = space.truth(state)
        return NONE


@iterator_type(itertools.starmap)
class StarMap(_OverOne):
    """`starmap(function, iterable)`."""

    __slots__ = ()
    passes_stop = True

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, iterable: Value, /) -> Value:
        return StarMap.over(space, cls, function, iterable)

    def produce(self, space: Space) -> Value | None:
        item = space.next(self.iterator)
        return None if item is None else space.call(self.function, space.unpack(item), {})


@iterator_type(itertools.filterfalse)
class FilterFalse(_OverOne):
    """`filterfalse(predicate, iterable)`."""

    __slots__ = ()
    passes_stop = True

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, iterable: Value, /) -> Value:
        return FilterFalse.over(space, cls, function, iterable)

    def produce(self, space: Space) -> Value | None:
        plain = is_none(self.function) or space.identity(self.function) is bool
        while (item := space.next(self.iterator)) is not None:
            if not space.truth(item if plain else space.call(self.function, [item], {})):
                return item
        return None


@iterator_type(itertools.takewhile)
class TakeWhile(_Switching):
    """`takewhile(predicate, iterable)`."""

    __slots__ = ()
    passes_stop = True

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, iterable: Value, /) -> Value:
        return TakeWhile.over(space, cls, function, iterable)

    def produce(self, space: Space) -> Value | None:
        if self.switched:
            return None
        item = space.next(self.iterator)
        if item is None or space.truth(space.call(self.function, [item], {})):
            return item
        space.mark_mutated(self)
        self.switched = True
        return None

    def made(self, writer: Writer) -> str:
        return f"{self.begin_call(writer)}{writer.const(bool)}, ())" if self.switched else super().made(writer)


@iterator_type(itertools.dropwhile)
class DropWhile(_Switching):
    """`dropwhile(predicate, iterable)`."""

    __slots__ = ()
    passes_stop = True

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, iterable: Value, /) -> Value:
        return DropWhile.over(space, cls, function, iterable)

    def produce(self, space: Space) -> Value | None:
        while (item := space.next(self.iterator)) is not None:
            if self.switched:
                return item
            if not space.truth(space.call(self.function, [item], {})):
                space.mark_mutated(self)
                self.switched = True
                return item
        return None

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None or not self.switched:
            return super().reconstruct(writer)
        # One false item in front makes it begin; the predicate is not asked again.
        rest = f"{writer.const(itertools.chain)}([0], {writer.expr(self.iterator)})"
        return advanced(writer, f"{self.begin_call(writer)}{writer.const(bool)}, {rest})", 1)


@iterator_type(itertools.accumulate)
class Accumulate(ItertoolsIterator):
    """`accumulate(iterable, function, initial=…)`; `total` is None before the first item."""

    __slots__ = ("function", "initial", "iterator", "total")
    passes_stop = True

    function: Value
    initial: Value | None
    iterator: Value
    total: Value | None

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, func: Value = NONE, *, initial: Value = NONE) -> Value:
        self = Accumulate(own_class(space, cls))
        self.iterator = space.iter(iterable)
        self.function = func
        self.initial = None if is_none(initial) else initial
        self.total = None
        return self

    def produce(self, space: Space) -> Value | None:
        if self.initial is not None:
            space.mark_mutated(self)
            self.total, self.initial = self.initial, None
            return self.total
        item = space.next(self.iterator)
        if item is None:
            return None
        if self.total is not None:
            if is_none(self.function):
                item = space.binary("+", self.total, item)
            else:
                item = space.call(self.function, [self.total, item], {})
        space.mark_mutated(self)
        self.total = item
        return item

    def reduced(self, space: Space) -> Value:
        if self.initial is not None:
            return reduction(space, self.cls, [self._after(space, self.initial), self.function], NONE)
        if self.total is not None and is_none(self.total):  # as a state it would mean that there is none
            args = [self._after(space, self.total), self.function]
            again = space.call(space.class_value(self.cls), args, {})
            return reduction(space, itertools.islice, [again, Constant(1), NONE])
        return reduction(space, self.cls, [self.iterator, self.function], self.total or NONE)

    def _after(self, space: Space, first: Value) -> Value:
        return space.call(space.existing(itertools.chain), [space.new_tuple([first]), self.iterator], {})

    def tp_setstate(self, space: Space, state: Value, /) -> Value:
        self.warn_of_copies(space)
        if self.source is not None:
            raise refuse("itertools.accumulate.__setstate__")
        space.mark_mutated(self)
        self.total = state
        return NONE

    def rebuilt(self, writer: Writer) -> str:
        rest, function = writer.expr(self.iterator), writer.expr(self.function)
        first, maker = self.initial if self.total is None else self.total, writer.const(self.cls)
        if first is None:
            return writer.assign("iterator", f"{maker}({rest}, {function})")
        if is_none(first):  # as `initial` it would mean that there is none
            return advanced(writer, f"{maker}({writer.const(itertools.chain)}([None], {rest}), {function})", 1)
        steps = 0 if self.total is None else 1
        return advanced(writer, f"{maker}({rest}, {function}, initial={writer.expr(first)})", steps)
