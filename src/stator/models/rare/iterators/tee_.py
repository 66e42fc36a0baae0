"""`itertools.tee`: iterators that share what another one gives."""

from __future__ import annotations

import itertools

from stator.models.iterators.iterator import IteratorValue, advanced, iterator_type
from stator.space.interfaces import Writer
from stator.space.protocol import builtin
from stator.space.space import Space
from stator.space.value import Constant, Value

_TEE: type = type(itertools.tee(())[0])


class _Shared(Value):
    """What the iterators of one `tee` share: an iterator and the items it has given so far."""

    __slots__ = ("items", "iterator", "running")

    def __init__(self, iterator: Value) -> None:
        self.cls = _TEE
        self.running = False
        self.source = None
        self.iterator = iterator
        self.items: list[Value] = []

    def item(self, space: Space, index: int) -> Value | None:
        """The item at a position, None beyond the end."""
        if index == len(self.items):
            if self.running:
                raise space.error(RuntimeError, "cannot re-enter the tee iterator")
            self.running = True
            try:
                item = space.next(self.iterator)
            finally:
                self.running = False
            if item is None:
                return None
            space.mark_mutated(self)
            self.items.append(item)
        return self.items[index]

    def reconstruct(self, writer: Writer) -> str:
        rest = writer.expr(self.iterator)
        if self.items:
            given = ", ".join([writer.expr(item) for item in self.items])
            rest = f"{writer.const(itertools.chain)}([{given}], {rest})"
        return writer.assign("shared", f"{writer.const(itertools.tee)}({rest}, 1)[0]")


@iterator_type(_TEE)
class Tee(IteratorValue):
    """One of the iterators that `tee(iterable)` gives."""

    __slots__ = ("index", "shared")

    def __init__(self, shared: _Shared, index: int) -> None:
        super().__init__()
        self.shared = shared
        self.index = index

    def produce(self, space: Space) -> Value | None:
        item = self.shared.item(space, self.index)
        if item is not None:
            space.mark_mutated(self)
            self.index += 1
        return item

    def tp_copy(self, space: Space) -> Value:
        self.open(space)
        return Tee(self.shared, self.index)

    def rebuilt(self, writer: Writer) -> str:
        return advanced(writer, f"{writer.expr(self.shared)}.__copy__()", self.index)


@builtin(itertools.tee)
def tee(space: Space, iterable: Value, n: Value = Constant(2), /) -> Value:  # noqa: B008 (immutable)
    count = space.int_(n)
    if count < 0:
        raise space.error(ValueError, "n must be >= 0")
    if count == 0:
        return space.new_tuple([])
    first = space.iter(iterable)
    copier = space.getattr_or_none(first, "__copy__")
    if copier is None:
        first = Tee(_Shared(first), 0)
        copier = space.getattr(first, "__copy__")
    return space.new_tuple([first, *(space.call(copier, [], {}) for _ in range(count - 1))])
