"""itertools, continued: iterators that take more than one item for each that they give."""

from __future__ import annotations

import itertools

from stator.models.iterators.iterator import IteratorValue, advanced, iterator_type, own_class
from stator.models.iterators.itertools_ import ItertoolsIterator
from stator.space.interfaces import Writer
from stator.space.protocol import NONE
from stator.space.space import Space
from stator.space.value import Constant, Raised, Value


@iterator_type(itertools.zip_longest)
class ZipLongest(ItertoolsIterator):
    """`zip_longest(*iterables, fillvalue=…)`; an exhausted iterator is None, `active` how many of them are not."""

    __slots__ = ("active", "fill", "iterators")

    active: int
    fill: Value
    iterators: list[Value | None]

    @staticmethod
    def tp_new(space: Space, cls: Value, *iterables: Value, fillvalue: Value = NONE) -> Value:
        owner, iterators = own_class(space, cls), [space.iter(each) for each in iterables]
        return ZipLongest.of(owner, iterators=iterators, active=len(iterables), fill=fillvalue)

    def produce(self, space: Space) -> Value | None:
        items = []
        if self.active == 0:
            return None
        for i, iterator in enumerate(self.iterators):
            item = None if iterator is None else self._next_of(space, iterator)
            if item is None and iterator is not None:
                space.mark_mutated(self)
                self.active -= 1
                if self.active == 0:
                    return None
                self.iterators[i] = None
            items.append(self.fill if item is None else item)
        return space.new_tuple(items)

    def _next_of(self, space: Space, iterator: Value) -> Value | None:
        try:
            return space.next(iterator)
        except Raised:
            space.mark_mutated(self)
            self.active = 0
            raise

    def arguments(self, space: Space) -> list[Value]:
        return [space.new_tuple([]) if iterator is None else iterator for iterator in self.iterators]

    def state(self, space: Space) -> list[Value]:
        return [self.fill]

    def restore(self, space: Space, state: Value) -> None:
        if self.source is not None:
            raise self.without_state()
        self.fill = state

    def made(self, writer: Writer) -> str:
        live = [iterator if self.active else None for iterator in self.iterators]
        parts = ["()" if iterator is None else writer.expr(iterator) for iterator in live]
        text = self.call_text(writer, *parts, f"fillvalue={writer.expr(self.fill)}")
        return text if self.active else advanced(writer, text, 1)  # a step makes it forget its iterators


@iterator_type(itertools.compress)
class Compress(ItertoolsIterator):
    """`compress(data, selectors)`."""

    __slots__ = ("data", "selectors")
    passes_stop = True

    data: Value
    selectors: Value

    @staticmethod
    def tp_new(space: Space, cls: Value, data: Value, selectors: Value) -> Value:
        return Compress.of(own_class(space, cls), data=space.iter(data), selectors=space.iter(selectors))

    def produce(self, space: Space) -> Value | None:
        while (item := space.next(self.data)) is not None:
            selector = space.next(self.selectors)
            if selector is None:
                return None
            if space.truth(selector):
                return item
        return None

    def arguments(self, space: Space) -> list[Value]:
        return [self.data, self.selectors]


def _latter(_: object, item: object) -> object:
    return item


@iterator_type(itertools.pairwise)
class Pairwise(IteratorValue):
    """`pairwise(iterable)`; `old` is None before the first pair."""

    __slots__ = ("iterator", "old")
    passes_stop = True

    iterator: Value | None
    old: Value | None

    @staticmethod
    def tp_new(space: Space, cls: Value, iterable: Value, /) -> Value:
        return Pairwise.of(own_class(space, cls), iterator=space.iter(iterable), old=None)

    def produce(self, space: Space) -> Value | None:
        if self.iterator is None:
            return None
        space.mark_mutated(self)
        old = self.old
        if old is None:
            self.old = old = space.next(self.iterator)
        if old is None or self.iterator is None:  # what it goes over may have asked it for an item itself
            self.iterator = self.old = None
            return None
        self.old = new = space.next(self.iterator)
        if new is None:
            self.iterator = None
            return None
        return space.new_tuple([old, new])

    def made(self, writer: Writer) -> str:
        if self.iterator is None:
            return self.call_text(writer, "()")
        rest = writer.expr(self.iterator)
        if self.old is not None:
            # accumulate passes on what the iterator ends with; chain would not
            old = f"initial={writer.expr(self.old)}"
            rest = f"{writer.const(itertools.accumulate)}({rest}, {writer.const(_latter)}, {old})"
        return self.call_text(writer, rest)


if hasattr(itertools, "batched"):

    @iterator_type(itertools.batched)
    class Batched(IteratorValue):
        """`batched(iterable, n)`."""

        __slots__ = ("iterator", "size", "strict")

        iterator: Value | None
        size: int
        strict: bool

        @staticmethod
        def tp_new(space: Space, cls: Value, iterable: Value, n: Value, *, strict: Value = Constant(False)) -> Value:  # noqa: B008
            size = space.int_(n)
            if size < 1:
                raise space.error(ValueError, "n must be at least one")
            owner, iterator = own_class(space, cls), space.iter(iterable)
            return Batched.of(owner, iterator=iterator, size=size, strict=space.truth(strict))

        def produce(self, space: Space) -> Value | None:
            items: list[Value] = []
            if self.iterator is None:
                return None
            while len(items) < self.size and (item := space.next(self.iterator)) is not None:
                items.append(item)
            if len(items) < self.size:
                space.mark_mutated(self)
                self.iterator = None
                if items and self.strict:
                    raise space.error(ValueError, "batched(): incomplete batch")
            return space.new_tuple(items) if items else None

        def made(self, writer: Writer) -> str:
            rest = "()" if self.iterator is None else writer.expr(self.iterator)
            return self.call_text(writer, rest, str(self.size), *["strict=True"] * self.strict)
