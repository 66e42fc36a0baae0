"""Iteration: `PyObject_GetIter`, `PyIter_Next`, unpacking."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

from stator.guards.raw import is_heap_type
from stator.host.version_facts import UNPACKING_SAYS_HOW_MANY
from stator.space.attributes import MISSING
from stator.space.host_types import Host
from stator.space.space import Space
from stator.space.value import Raised, Value

#: classes of iterators that nobody derives another `__next__` from; they live as long as the interpreter
_STATIC = set[type]()


class Iteration(Space):
    """Part of the space: iter, next, iterate, unpack."""

    _end_wanted = False

    def is_iterable(self, value: Value) -> bool:
        """Whether `iter(value)` is not refused from the start."""
        value = value.force()
        return self.special(value, "__iter__") is not None or self.special(value, "__getitem__") is not None

    def iter(self, value: Value) -> Value:
        """`iter(value)`: `__iter__`, else the sequence protocol by `__getitem__`."""
        value = value.force()
        host = self.host_lookup(value.cls, "__iter__")
        if host is not MISSING and host is not None:
            result: Value = self.call(self.special(value, "__iter__"), [value], {}).force()  # type: ignore[arg-type]
            if self.host_lookup(result.cls, "__next__") is MISSING:
                raise self.error(TypeError, f"iter() returned non-iterator of type '{result.type_name(self)}'")
            return result
        if host is MISSING and self.special(value, "__getitem__") is not None and not value.isa(dict):
            return self.sequence_iterator(value)
        raise self.error(TypeError, f"'{value.type_name(self)}' object is not iterable")

    def next(self, iterator: Value) -> Value | None:
        """`next(iterator)`, or None when it is exhausted."""
        self.trace.stops.count_item()
        self.ended_by = None
        iterator = iterator.force()
        quick = self._quick_next(iterator)
        if quick is not None:
            return quick(self)  # type: ignore[no-any-return]
        try:
            return self._call_next(iterator)
        except Raised as e:
            if e.matches(StopIteration):
                self.stopped_by(e.value)
                return None
            raise

    def stopped_by(self, stop: Value) -> None:
        """An iterator has ended by raising that, which another may pass on."""
        if self._end_wanted:
            self.ended_by = stop

    def passed_on(self, produce: Callable[[], Value | None]) -> Value:
        """What an iterator produces; or raises, at the end, the StopIteration of the one that it has asked last."""
        outer, self._end_wanted = self._end_wanted, True
        try:
            found = produce()
            stop = self.ended_by
        finally:
            self._end_wanted = outer
            self.ended_by = None
        if found is None:
            raise self.error(StopIteration) if stop is None else Raised(stop)
        return found

    def advance(self, iterator: Value) -> Value:
        """`tp_iternext` as called: the StopIteration of an exhausted iterator, with its value, is raised."""
        iterator = iterator.force()
        quick = None if getattr(iterator, "passes_stop", False) else self._quick_next(iterator)
        if quick is not None:
            item: Value | None = quick(self)
            if item is None:
                raise self.error(StopIteration)
            return item
        return self._call_next(iterator)

    def _quick_next(self, iterator: Value) -> Host:
        """How the model goes on, unless the class of the iterator overrides `__next__`."""
        quick = getattr(iterator, "next_value", None)
        if quick is None or iterator.cls in _STATIC:
            return quick
        if not is_heap_type(iterator.cls):
            _STATIC.add(iterator.cls)
            return quick
        return quick if type(self.host_lookup(iterator.cls, "__next__")) is types.WrapperDescriptorType else None

    def _call_next(self, iterator: Value) -> Value:
        """`iterator.__next__()` by its slot."""
        slot = self.special(iterator, "__next__")
        if slot is None:
            raise self.error(TypeError, f"'{iterator.type_name(self)}' object is not an iterator")
        return self.call(slot, [iterator], {})

    def iterate(self, value: Value) -> Iterator[Value]:
        """A host iterator over `iter(value)`."""
        iterator = self.iter(value)
        while (item := self.next(iterator)) is not None:
            yield item

    def unpack(self, value: Value) -> list[Value]:
        """`list(value)` as a host list of values."""
        value = value.force()
        quick = getattr(value, "unpack", None)
        if quick is not None and self.host_lookup(value.cls, "__iter__") in value.plain_iters:  # type: ignore[attr-defined]
            return quick(self)  # type: ignore[no-any-return]
        return list(self.iterate(value))

    def unpack_exactly(self, value: Value, count: int) -> list[Value]:
        """`a, b, c = value`, with CPython's error messages."""
        value = value.force()
        self._check_unpackable(value)
        exact = value.cls is tuple or value.cls is list
        items = self.unpack(value) if exact else self.unpack_up_to(value, count + 1)
        if len(items) < count:
            raise self.error(ValueError, f"not enough values to unpack (expected {count}, got {len(items)})")
        if len(items) > count:
            sized = UNPACKING_SAYS_HOW_MANY and value.cls in (tuple, list, dict)
            got = f", got {self.int_(self.len(value))}" if sized else ""
            raise self.error(ValueError, f"too many values to unpack (expected {count}{got})")
        return items

    def unpack_up_to(self, value: Value, most: int) -> list[Value]:
        items: list[Value] = []
        iterator = self.iter(value)
        while len(items) < most and (item := self.next(iterator)) is not None:
            items.append(item)
        return items

    def _check_unpackable(self, value: Value) -> None:
        if self.host_lookup(value.cls, "__iter__") is MISSING and self.host_lookup(value.cls, "__getitem__") is MISSING:
            raise self.error(TypeError, f"cannot unpack non-iterable {value.type_name(self)} object")

    def unpack_ex(self, value: Value, before: int, after: int) -> list[Value]:
        """`a, *b, c = value`: the values in order, the starred one a list."""
        self._check_unpackable(value.force())
        items = self.unpack(value)
        if len(items) < before + after:
            raise self.error(
                ValueError, f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
            )
        middle: Any = self.new_list(items[before : len(items) - after])
        return [*items[:before], middle, *items[len(items) - after :]]
