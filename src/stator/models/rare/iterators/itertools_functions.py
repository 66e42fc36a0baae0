"""itertools: iterators that ask a function about each item of one other."""

from __future__ import annotations

import itertools

from stator.models.iterators.builtins_iter import OverOne, next_where
from stator.models.iterators.iterator import advanced, iterator_type, reduction
from stator.models.iterators.itertools_ import ItertoolsIterator
from stator.space.interfaces import Writer
from stator.space.protocol import NONE
from stator.space.space import Space
from stator.space.value import Constant, Value


class _OverOne(ItertoolsIterator, OverOne):
    """One of itertools."""

    __slots__ = ()


class _Switching(_OverOne):
    """One whose predicate says, but once, that the rest is treated otherwise."""

    __slots__ = ("switched",)

    switched: bool

    def state(self, space: Space) -> list[Value]:
        return [Constant(int(self.switched))]

    def restore(self, space: Space, state: Value) -> None:
        if self.source is not None:
            raise self.without_state()
        self.switched = space.truth(state)

    def switch(self, space: Space) -> None:
        """The predicate has said so."""
        space.mark_mutated(self)
        self.switched = True


@iterator_type(itertools.starmap)
class StarMap(_OverOne):
    """`starmap(function, iterable)`."""

    __slots__ = ()

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

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, iterable: Value, /) -> Value:
        return FilterFalse.over(space, cls, function, iterable)

    def produce(self, space: Space) -> Value | None:
        return next_where(space, self.function, self.iterator, False)


@iterator_type(itertools.takewhile)
class TakeWhile(_Switching):
    """`takewhile(predicate, iterable)`."""

    __slots__ = ()

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, iterable: Value, /) -> Value:
        return TakeWhile.over(space, cls, function, iterable, switched=False)

    def produce(self, space: Space) -> Value | None:
        if self.switched:
            return None
        item = space.next(self.iterator)
        if item is None or space.truth(space.call(self.function, [item], {})):
            return item
        self.switch(space)
        return None

    def made(self, writer: Writer) -> str:
        return self.call_text(writer, writer.const(bool), "()") if self.switched else super().made(writer)


@iterator_type(itertools.dropwhile)
class DropWhile(_Switching):
    """`dropwhile(predicate, iterable)`."""

    __slots__ = ()

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, iterable: Value, /) -> Value:
        return DropWhile.over(space, cls, function, iterable, switched=False)

    def produce(self, space: Space) -> Value | None:
        while (item := space.next(self.iterator)) is not None:
            if self.switched:
                return item
            if not space.truth(space.call(self.function, [item], {})):
                self.switch(space)
                return item
        return None

    def rebuilt(self, writer: Writer) -> str:
        if not self.switched:
            return super().rebuilt(writer)
        # One false item in front makes it begin; the predicate is not asked again.
        rest = f"{writer.const(itertools.chain)}([0], {writer.expr(self.iterator)})"
        return advanced(writer, self.call_text(writer, writer.const(bool), rest), 1)


@iterator_type(itertools.accumulate)
class Accumulate(_OverOne):
    """`accumulate(iterable, function, initial=…)`; `total` is None before the first item."""

    __slots__ = ("initial", "total")

    initial: Value | None
    total: Value | None

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, func: Value = NONE, *, initial: Value = NONE) -> Value:
        first = None if initial.is_none() else initial
        return Accumulate.over(space, cls, func, iterable, initial=first, total=None)

    def produce(self, space: Space) -> Value | None:
        if self.initial is not None:
            space.mark_mutated(self)
            self.total, self.initial = self.initial, None
            return self.total
        item = space.next(self.iterator)
        if item is None:
            return None
        if self.total is not None:
            if self.function.is_none():
                item = space.binary("+", self.total, item)
            else:
                item = space.call(self.function, [self.total, item], {})
        space.mark_mutated(self)
        self.total = item
        return item

    def reduced(self, space: Space) -> Value:
        if self.initial is not None:
            return reduction(space, self.cls, [self._after(space, self.initial), self.function], NONE)
        if self.total is not None and self.total.is_none():  # as a state it would mean that there is none
            args = [self._after(space, self.total), self.function]
            again = space.call(space.class_value(self.cls), args, {})
            return reduction(space, itertools.islice, [again, Constant(1), NONE])
        return reduction(space, self.cls, [self.iterator, self.function], self.total or NONE)

    def _after(self, space: Space, first: Value) -> Value:
        return space.call(space.existing(itertools.chain), [space.new_tuple([first]), self.iterator], {})

    def restore(self, space: Space, state: Value) -> None:
        if self.source is not None:
            raise self.without_state()
        self.total = state

    def rebuilt(self, writer: Writer) -> str:
        rest, function = writer.expr(self.iterator), writer.expr(self.function)
        first = self.initial if self.total is None else self.total
        if first is None:
            return writer.assign("iterator", self.call_text(writer, rest, function))
        if first.is_none():  # as `initial` it would mean that there is none
            rest = f"{writer.const(itertools.chain)}([None], {rest})"
            return advanced(writer, self.call_text(writer, rest, function), 1)
        begun = self.call_text(writer, rest, function, f"initial={writer.expr(first)}")
        return advanced(writer, begun, 0 if self.total is None else 1)
