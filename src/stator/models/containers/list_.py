"""list."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from stator.host.version_facts import SEARCHES_SHOW_THE_ITEM, SORT_TAKES_TRUTH
from stator.host.words import error_words
from stator.models.classes.instance import fill
from stator.models.containers.sequence import MAXSIZE, Sequence, is_slice, slice_of
from stator.models.containers.sort import sorted_items
from stator.models.iterators.iterator import ListIterator, ListReverseIterator
from stator.space.deferred import concatenated
from stator.space.length_hint import iterate_sized
from stator.space.protocol import FALSE, NONE, TRUE, models, pure
from stator.space.recursion import repr_piece
from stator.space.value import Constant, NotKnown, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["ListValue"]


def _c_int(space: Space, flag: Value) -> int:
    """What `reverse` is to CPython up to 3.11: an int of C."""
    number = space.int_(flag)
    space.run_known(lambda n: [].sort(reverse=n), [Constant(number)])
    return number


@models(list)
class ListValue(Sequence):
    """A list, or an instance of a subclass.

    What is appended to an existing list whose items nobody has asked for waits in `_tail`, so that it needs no guard.
    """

    __slots__ = ("_tail", "original", "version")

    kind = list
    plain_iters = (list.__iter__,)

    def __init__(self, items: list[Value] | None = None, cls: type = list) -> None:
        super().__init__([] if items is None else list(items), cls)
        self._tail: list[Value] = []
        #: the items before the first mutation of an existing list
        self.original: list[Value] | None = None
        #: counts the mutations
        self.version = 0

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Any) -> ListValue:
        self: ListValue = super().from_host(space, host, source)
        self._items = None
        return self

    @staticmethod
    def tp_new(space: Space, cls: Value, *args: Value, **kwargs: Value) -> Value:
        return ListValue([], cls.force().as_host(space))

    def tp_init(self, space: Space, iterable: Value | None = None, /) -> Value:
        if self.source is not None or self.items:
            self.clear(space)
        if iterable is not None:
            self.extend(space, iterable)
        return NONE

    def build(self, space: Space, items: list[Value]) -> Value:
        return ListValue(items)

    # -- state ------------------------------------------------------------------------------------------------------

    def _load(self) -> list[Value]:
        items = super()._load()
        if self._tail:
            self.original = list(items)
            items += self._tail
            self._tail = []
        return items

    def mutable(self, space: Space) -> list[Value]:
        """The items, about to be mutated."""
        items = self.items
        space.mark_mutated(self)
        self.version += 1
        if self.source is not None and self.original is None:
            self.original = list(items)
        return items

    @property
    def changed(self) -> bool:
        """Whether the traced program has changed this existing list."""
        return self.original is not None or bool(self._tail)

    def as_host(self, space: Space) -> Any:
        if self.cls is not list:
            raise NotKnown(self)
        return self.host_items(space)

    # -- growing ----------------------------------------------------------------------------------------------------

    def append(self, space: Space, item: Value, /) -> Value:
        self._grow(space, [item])
        return NONE

    def _grow(self, space: Space, items: list[Value]) -> None:
        if self._items is None:
            space.mark_mutated(self)
            self.version += 1
            self._tail += items
        else:
            self.mutable(space).extend(items)

    def extend(self, space: Space, iterable: Value, /) -> Value:
        iterable = iterable.force()
        if iterable is self or iterable.cls in (list, tuple):
            self._grow(space, space.unpack(iterable))
            return NONE
        # Item by item: those taken before an exception stay in the list.
        for item in iterate_sized(space, iterable):
            self._grow(space, [item])
        return NONE

    def insert(self, space: Space, index: Value, item: Value, /) -> Value:
        where = self._ssize(space, index)
        self.mutable(space).insert(where, item)
        return NONE

    def tp_iadd(self, space: Space, iterable: Value, /) -> Value:
        self.extend(space, iterable)
        return self

    def tp_imul(self, space: Space, count: Value, /) -> Value:
        times = self.repetitions(space, count)
        items = self.mutable(space)
        items *= times
        return self

    # -- shrinking --------------------------------------------------------------------------------------------------

    def pop(self, space: Space, index: Value = Constant(-1), /) -> Value:  # noqa: B008 (immutable)
        where = self._ssize(space, index)
        items = self.items
        if not items:
            raise space.error(IndexError, "pop from empty list")
        if not -len(items) <= where < len(items):
            raise space.error(IndexError, "pop index out of range")
        return self.mutable(space).pop(where)

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

    def clear(self, space: Space) -> Value:
        if self.items:
            self.mutable(space).clear()
        return NONE

    # -- items ------------------------------------------------------------------------------------------------------

    def tp_len(self, space: Space) -> Value:
        return Constant(len(self.items))

    def tp_getitem(self, space: Space, key: Value, /) -> Value:
        return self.get(space, key)

    def tp_setitem(self, space: Space, key: Value, item: Value, /) -> Value:
        key = key.force()
        if is_slice(key):
            return self._set_slice(space, slice_of(space, key), item)
        where = self._assigned(space, key)
        self.mutable(space)[where] = item
        return NONE

    def _assigned(self, space: Space, key: Value) -> int:
        where = self.position(space, key)
        count = len(self.items)
        if not -count <= where < count:
            raise space.error(IndexError, "list assignment index out of range")
        return where

    def _set_slice(self, space: Space, where: slice, item: Value) -> Value:
        step = where.step not in (None, 1)
        if not _iterable(space, item):
            raise space.error(TypeError, error_words(operator.setitem, [], where, None))
        new = space.unpack(item)
        items = self.items
        if step:
            count = len(range(*where.indices(len(items))))
            if count != len(new):
                words = f"attempt to assign sequence of size {len(new)} to extended slice of size {count}"
                raise space.error(ValueError, words)
        self.mutable(space)[where] = new
        return NONE

    def tp_delitem(self, space: Space, key: Value, /) -> Value:
        key = key.force()
        if is_slice(key):
            where = slice_of(space, key)
            del self.mutable(space)[where]
        else:
            index = self._assigned(space, key)
            del self.mutable(space)[index]
        return NONE

    # -- order ------------------------------------------------------------------------------------------------------

    def reverse(self, space: Space) -> Value:
        self.mutable(space).reverse()
        return NONE

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

    def tp_contains(self, space: Space, item: Value, /) -> Value:
        return FALSE if self.find(space, item) is None else TRUE

    def tp_add(self, space: Space, other: Value, /) -> Value:
        return self.concatenated(space, other)

    def tp_mul(self, space: Space, count: Value, /) -> Value:
        times = self.repetitions(space, count)
        return ListValue(self.items * times)

    def tp_rmul(self, space: Space, count: Value, /) -> Value:
        return self.tp_mul(space, count)

    def index(self, space: Space, item: Value, start: Value | None = None, stop: Value | None = None, /) -> Value:
        found = self.find(space, item, *self.bounds(space, start, stop))
        if found is None:
            if not SEARCHES_SHOW_THE_ITEM:
                raise space.error(ValueError, error_words([].index, None))
            raise space.error(ValueError, concatenated(repr_piece(space, item), " is not in list"))
        return Constant(found)

    def count(self, space: Space, item: Value, /) -> Value:
        return Constant(self.occurrences(space, item))

    def copy(self, space: Space) -> Value:
        return ListValue(self.items)

    def tp_eq(self, space: Space, other: Value, /) -> Value:
        return self.compared(space, "==", other)

    def tp_ne(self, space: Space, other: Value, /) -> Value:
        return self.compared(space, "!=", other)

    def tp_lt(self, space: Space, other: Value, /) -> Value:
        return self.compared(space, "<", other)

    def tp_le(self, space: Space, other: Value, /) -> Value:
        return self.compared(space, "<=", other)

    def tp_gt(self, space: Space, other: Value, /) -> Value:
        return self.compared(space, ">", other)

    def tp_ge(self, space: Space, other: Value, /) -> Value:
        return self.compared(space, ">=", other)

    def tp_repr(self, space: Space) -> Value:
        return self.shown(space, "[", "]")

    # -- residual ---------------------------------------------------------------------------------------------------

    def shell(self, writer: Writer) -> str:
        return "[]" if self.cls is list else f"{writer.const(list)}.__new__({writer.const(self.cls)})"

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        parts = ", ".join([writer.expr(item) for item in self.items])
        shell = writer.shell_of(self)
        if self.cls is list:
            if shell is None:
                return writer.assign("items", f"[{parts}]")
            writer.line(f"{shell}.extend([{parts}])")
            return shell
        name = shell or writer.assign(self.cls.__name__.lower(), self.shell(writer))
        writer.name_value(self, name)
        if parts:
            writer.line(f"{writer.const(list)}.extend({name}, [{parts}])")
        fill(self, writer, name)
        return name

    def effects(self, writer: Writer) -> list[str]:
        return [*self.slot_effects(writer), *self._item_effects(writer)]

    def _item_effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        name = writer.source(self.source)
        if self._items is None:
            return self._extension(writer, name, self._tail)
        if self.original is None:
            return []
        old, new = self.original, self._items
        start, kept = _common(old, new)
        changed = new[start : len(new) - kept]
        if start == len(old):
            return self._extension(writer, name, changed)
        parts = ", ".join([writer.expr(item) for item in changed])
        stop = len(old) - kept
        if len(changed) == 1 and stop == start + 1:
            target, parts = f"[{start}]", parts
        else:
            target, parts = f"[{start}:{stop if kept else ''}]", f"[{parts}]"
        if start == stop and not changed:
            return []
        if self.cls is list:
            return [f"{name}{target} = {parts}"]
        key = str(start) if target == f"[{start}]" else f"slice({start}, {stop})"
        return [f"{writer.const(list)}.__setitem__({name}, {key}, {parts})"]

    def _extension(self, writer: Writer, name: str, items: list[Value]) -> list[str]:
        parts = [writer.expr(item) for item in items]
        if not parts:
            return []
        if self.cls is not list:
            return [f"{writer.const(list)}.extend({name}, [{', '.join(parts)}])"]
        return [f"{name}.append({parts[0]})" if len(parts) == 1 else f"{name}.extend([{', '.join(parts)}])"]


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


def _iterable(space: Space, value: Value) -> bool:
    value = value.force()
    return space.special(value, "__iter__") is not None or space.special(value, "__getitem__") is not None


pure(list.__dict__["__class_getitem__"])
