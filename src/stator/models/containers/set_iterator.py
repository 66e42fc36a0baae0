"""Iterators over sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator import errors
from stator.guards.guard import Equals
from stator.guards.raw import raw_length
from stator.guards.source import CallSource, Source
from stator.models.containers.dict_iterators import advance
from stator.models.containers.set_table import iterated_set
from stator.models.iterators.iterator import advanced, broken, over_changed, reduction
from stator.space.protocol import models
from stator.space.value import ObjectValue, Unsupported, Value

if TYPE_CHECKING:
    from stator.models.containers.set_ import SetValue
    from stator.space.interfaces import Writer
    from stator.space.space import Space

_ITERATOR: Any = type(iter(set[Any]()))
_CHANGED = "Set changed size during iteration"


def set_position(iterator: Any) -> int:
    """How many steps an iterator has taken over its set; -1 where it is exhausted, -2 where the set has changed."""
    try:
        shown = iterated_set(iterator)
        return len(shown) - len(iterator.__reduce__()[1][0])
    except LookupError:
        return -1
    except RuntimeError:
        return -2


@models(_ITERATOR)
class SetIterator(ObjectValue):
    """`iter(s)`."""

    __slots__ = ("_items", "_version", "position", "shown", "size", "taken")

    plain_iters: tuple[Any, ...] = (_ITERATOR.__iter__,)

    def __init__(self, space: Space, shown: SetValue | None, start: int | None = None) -> None:
        self.cls = _ITERATOR
        self.source: Source | None = None
        self.host: Any = None
        self.shown = shown
        self.position = start or 0
        self.taken = 0
        self._items: list[Value] = []
        self._version = self.size = 0
        if shown is not None and start is not None and shown.table.log:
            # An iterator made before the trace over a set that the trace has changed already.
            self._version = -1
            self.size = raw_length(shown.host)
        elif shown is not None:
            self._items = shown.unpack(space)
            self._version = shown.table.version
            self.size = len(self._items)

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> SetIterator:
        space.guard_type(host, source)
        steps = set_position(host)
        if steps == -2:
            raise Unsupported(errors.OpaqueIterator("a set_iterator whose set has changed"))
        space.trace.guard(Equals(CallSource(set_position, source, "position"), steps))
        shown: Any = None
        if steps >= 0:
            shown = space.wrap(iterated_set(host), CallSource(iterated_set, source, "iterated")).force()
        self = cls(space, shown, max(steps, 0))
        self.host = host
        self.source = source
        return self

    def tp_iter(self, space: Space) -> Value:
        return self

    def tp_next(self, space: Space) -> Value:
        value = self.next_value(space)
        if value is None:
            raise space.error(StopIteration)
        return value

    def next_value(self, space: Space) -> Value | None:
        if self.shown is None:
            return None
        if self.shown.table.version != self._version:
            self._changed(space, self.shown)
        if self.source is not None:
            space.mark_mutated(self)
            self.taken += 1
        if self.position >= len(self._items):
            self.shown = None
            return None
        self.position += 1
        return self._items[self.position - 1]

    def _changed(self, space: Space, shown: SetValue) -> None:
        if shown.table.size(space) != self.size:
            self.size = -1
            raise space.error(RuntimeError, _CHANGED)
        raise Unsupported(errors.UnsupportedMutation("exchange of elements during iteration", shown.describe()))

    def unpack(self, space: Space) -> list[Value]:
        items = []
        while (item := self.next_value(space)) is not None:
            items.append(item)
        return items

    def tp_length_hint(self, space: Space) -> Value:
        if self.shown is None or self.shown.table.version != self._version:
            return space.fresh(0)
        return space.fresh(len(self._items) - self.position)

    def tp_reduce(self, space: Space) -> Value:
        if self.shown is not None and self.shown.table.version != self._version:
            self._changed(space, self.shown)
        return reduction(space, iter, [space.new_list(self._items[self.position :] if self.shown is not None else [])])

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        shown = self.shown
        if shown is None:
            return advanced(writer, "iter(set())", 1)
        if shown.table.version != self._version:
            if shown.table.length() == self.size:
                raise Unsupported(errors.NotReconstructible("an iterator over a set whose elements were exchanged"))
            return broken(writer, "set()", lambda other: f"iter({other})", ".add(None)")
        made = f"{writer.const(shown.solid)}.__iter__({writer.expr(shown)})"
        if shown.table.log or writer.is_unfinished(shown):  # the real set is changed only after this code has run
            return over_changed(writer, made, self.position)
        return advanced(writer, made, self.position)

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        return [f"{writer.const(advance)}({writer.source(self.source)}, {self.taken})"] if self.taken else []
