"""list."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable

from stator.host.version_facts import SORT_TAKES_TRUTH
from stator.host.words import error_words
from stator.models.containers.mutable_sequence import MutableSequence
from stator.models.containers.sequence import MAXSIZE, is_slice, slice_of
from stator.models.containers.sort import sorted_items
from stator.models.iterators.iterator import ListIterator, ListReverseIterator
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.length_hint import iterate_sized
from stator.space.operands import host_errors
from stator.space.protocol import FALSE, NONE, models, pure
from stator.space.space import Space
from stator.space.value import Constant, Value

__all__ = ["ListValue"]


def _c_int(space: Space, flag: Value) -> int:
    """What `reverse` is to CPython up to 3.11: an int of C."""
    number = space.int_(flag)
    space.run_known(lambda n: [].sort(reverse=n), [Constant(number)])
    return number


@models(list)
class ListValue(MutableSequence):
    """A list, or an instance of a subclass."""

    __slots__ = ()

    kind = list
    plain_iters = (list.__iter__,)

    @staticmethod
    def tp_new(space: Space, cls: Value, *args: Value, **kwargs: Value) -> Value:
        return ListValue([], cls.force().as_host(space))

    def tp_init(self, space: Space, iterable: Value | None = None, /) -> Value:
        if self.source is not None or self.items:
            self.clear(space)
        if iterable is not None:
            self.extend(space, iterable)
        return NONE

    # -- growing ----------------------------------------------------------------------------------------------------

    def extend(self, space: Space, iterable: Value, /) -> Value:
        iterable = iterable.force()
        if iterable is self or iterable.cls in (list, tuple):
            if not self.take(space, iterable):
                self.grow(space, space.unpack(iterable))
            return NONE
        if iterable.cls is deque and self.take(space, iterable):
            return NONE
        # Item by item: those taken before an exception stay in the list.
        for item in iterate_sized(space, iterable):
            self.grow(space, [item])
        return NONE

    def insert(self, space: Space, index: Value, item: Value, /) -> Value:
        where = self._ssize(space, index)
        return NONE if where == 0 and self.put_first(space, item) else self._by_host(space, list.insert, where, item)

    def _by_host(self, space: Space, method: Callable[..., Value | None], *args: object) -> Value:
        """Let the host's list of the items do it, which knows the errors."""
        self.give_items()
        items = self.items
        before = list(items) if self.source is not None and self.original is None else self.original
        with host_errors(space, IndexError, ValueError):
            result = method(items, *args)
        self.original = before
        self.mutable(space)
        return result or NONE

    # -- shrinking --------------------------------------------------------------------------------------------------

    def pop(self, space: Space, index: Value = Constant(-1), /) -> Value:  # noqa: B008 (immutable)
        return self._by_host(space, list.pop, self._ssize(space, index))

    def _ssize(self, space: Space, index: Value) -> int:
        where = space.int_(index)
        if not -MAXSIZE - 1 <= where <= MAXSIZE:
            raise space.error(OverflowError, "Python int too large to convert to C ssize_t")
        return where

    def remove(self, space: Space, item: Value, /) -> Value:
        found = self.find(space, item)
        if found is None:
            raise space.error(ValueError, "list.remove(x): x not in list")
        del self.mutable(space)[found : found + 1]
        return NONE

    # -- items ------------------------------------------------------------------------------------------------------

    def tp_getitem(self, space: Space, key: Value, /) -> Value:
        return self.get(space, key)

    def tp_setitem(self, space: Space, key: Value, item: Value, /) -> Value:
        if self.store(space, key.force(), item):
            return NONE
        where = self._place(space, key)
        new: Host = item
        if isinstance(where, slice):
            if not space.is_iterable(item):
                raise space.error(TypeError, error_words(operator.setitem, [], where, None))
            new = space.unpack(item)
        return self._by_host(space, list.__setitem__, where, new)

    def tp_delitem(self, space: Space, key: Value, /) -> Value:
        return self._by_host(space, list.__delitem__, self._place(space, key))

    def _place(self, space: Space, key: Value) -> slice | int:
        """The host's subscript."""
        key = key.force()
        return slice_of(space, key) if is_slice(key) else self.position(space, key)

    # -- order ------------------------------------------------------------------------------------------------------

    def reverse(self, space: Space) -> Value:
        return self._by_host(space, list.reverse)

    def sort(self, space: Space, *, key: Value = NONE, reverse: Value = FALSE) -> Value:
        backwards = space.truth(reverse) if SORT_TAKES_TRUTH else _c_int(space, reverse) != 0
        items = list(self.mutable(space))
        result = list(items)
        self._items = []
        version = self.version
        try:
            sorted_items(space, items, key.force(), backwards, result)
        finally:
            disturbed = self.version != version
            self._items = result
        if disturbed:
            raise space.error(ValueError, "list modified during sort")
        return NONE

    # -- the rest ---------------------------------------------------------------------------------------------------

    def tp_iter(self, space: Space) -> Value:
        return ListIterator(self)

    def tp_reversed(self, space: Space) -> Value:
        return ListReverseIterator(self, len(self.items) - 1)

    def copy(self, space: Space) -> Value:
        return ListValue(self.items)

    def tp_repr(self, space: Space) -> Value:
        return self.shown(space, "[", "]")

    # -- generated code ---------------------------------------------------------------------------------------------

    def display(self, writer: Writer, items: str) -> str:
        return f"[{items}]"

    def filling(self, writer: Writer, name: str, items: str) -> str:
        return f"{writer.const(list)}.extend({name}, [{items}])" if items else ""

    def put_before(self, writer: Writer, name: str, items: list[str]) -> list[str]:
        if len(items) == 1:
            return [self.native_call(writer, name, "insert", "0", items[0])]
        return [self.native_call(writer, name, "__setitem__", "slice(0, 0)", f"[{', '.join(items)}]")]

    def rewrites(self, writer: Writer, name: str, old: list[Value], new: list[Value]) -> list[str]:
        start, kept = _common(old, new)
        changed = new[start : len(new) - kept]
        if start == len(old):
            return self.additions(writer, name, changed)
        parts = ", ".join([writer.expr(item) for item in changed])
        stop = len(old) - kept
        if start == stop and not changed:
            return []
        single = len(changed) == 1 and stop == start + 1
        items = parts if single else f"[{parts}]"
        if self.cls is list:
            target = f"[{start}]" if single else f"[{start}:{stop if kept else ''}]"
            return [f"{name}{target} = {items}"]
        key = str(start) if single else f"slice({start}, {stop})"
        return [f"{writer.const(list)}.__setitem__({name}, {key}, {items})"]


def _common(old: list[Value], new: list[Value]) -> tuple[int, int]:
    """How many items at the front, and how many at the end, are the same objects."""
    most = min(len(old), len(new))
    start = 0
    while start < most and old[start] is new[start]:
        start += 1
    kept = 0
    while kept < most - start and old[-1 - kept] is new[-1 - kept]:
        kept += 1
    return start, kept


pure(list.__dict__["__class_getitem__"])
