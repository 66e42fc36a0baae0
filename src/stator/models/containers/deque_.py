"""collections.deque."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar

from stator import errors
from stator.guards.guard import Length
from stator.guards.source import CallSource, ItemSource
from stator.host.version_facts import SEARCHES_SHOW_THE_ITEM
from stator.host.words import error_words
from stator.models.classes.instance import fill
from stator.models.containers.sequence import MAXSIZE, Sequence, too_long
from stator.models.iterators.iterator import IteratorValue, advanced, broken, iterator_type, over_changed, reduction
from stator.space.deferred import concatenated
from stator.space.facts import constant
from stator.space.protocol import FALSE, NONE, TRUE, bad_call, models, pure
from stator.space.recursion import IN_REPR, nested, repr_piece
from stator.space.value import Constant, NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stator.guards.source import Source
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["DequeValue"]

_MUTATED = "deque mutated during iteration"


def _not_found(space: Space, item: Value, search: Callable[[Any], Any]) -> Raised:
    shown = concatenated(repr_piece(space, item), " is not in deque") if SEARCHES_SHOW_THE_ITEM else None
    return space.error(ValueError, error_words(search, None) if shown is None else shown)


def deque_items(host: Any) -> list[Any]:
    """The items of a deque as a list, for guards and generated code."""
    return [*deque.__iter__(host)]


@models(deque)
class DequeValue(Sequence):
    """A deque, or an instance of a subclass. What is only appended to an existing one waits in `_tail`, unguarded."""

    __slots__ = ("_limit", "_tail", "original", "state")
    FIELDS = frozenset({"maxlen"})

    kind = deque
    plain_iters = (deque.__iter__,)

    def __init__(self, items: list[Value] | None = None, limit: int | None = None, cls: type = deque) -> None:
        super().__init__([] if items is None else list(items), cls)
        self._limit: int | None = limit
        self._tail: list[Value] = []
        #: the items before the first mutation of an existing deque
        self.original: list[Value] | None = None
        #: as in CPython: counts what invalidates iterators
        self.state = 0
        self._cut()

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> DequeValue:
        self = cls([], None, space.guard_type(host, source))
        self._items = None
        self.source, self.host, self.space = source, host, space
        self._limit = -1
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Any) -> DequeValue:
        return cls([space.fresh(item) for item in deque.__iter__(host)], host.maxlen, type(host))

    @staticmethod
    def tp_new(space: Space, cls: Value, *args: Value, **kwargs: Value) -> Value:
        return DequeValue([], None, cls.force().as_host(space))

    def tp_init(self, space: Space, iterable: Value | None = None, maxlen: Value = NONE) -> Value:
        limit = space.known(maxlen)
        if limit is not None:
            if not issubclass(maxlen.force().cls, int):
                raise space.error(TypeError, "an integer is required")
            limit = space.int_(maxlen)
            if limit < 0:
                raise space.error(ValueError, "maxlen must be non-negative")
        if self.source is not None:
            raise Unsupported(errors.UnsupportedMutation("deque.__init__", "an existing deque"))
        space.mark_mutated(self)
        self._limit = limit
        self._items = []
        if iterable is not None:
            self.extend(space, iterable)
        return NONE

    def build(self, space: Space, items: list[Value]) -> Value:
        return DequeValue(items, self.limit)

    # -- state ------------------------------------------------------------------------------------------------------

    @property
    def limit(self) -> int | None:
        """`maxlen`."""
        if self._limit == -1:
            assert self.source is not None
            self._limit = constant(self.space, self, "maxlen")
        return self._limit

    def get_field(self, space: Space, name: str) -> Value | None:
        return Constant(self.limit) if name == "maxlen" else None

    def _child(self, index: int) -> Value:
        assert self.source is not None
        items = CallSource(deque_items, self.source, "deque_items")
        return self.space.wrap(deque.__getitem__(self.host, index), ItemSource(items, index))  # type: ignore[no-any-return]

    def _load(self) -> list[Value]:
        assert self.source is not None
        hosts = deque_items(self.host)
        too_long(len(hosts))
        self.space.trace.guard(Length(self.source, len(hosts)))
        items = CallSource(deque_items, self.source, "deque_items")
        self._items = [self.space.wrap(host, ItemSource(items, i)) for i, host in enumerate(hosts)]
        if self._tail:
            self.original = list(self._items)
            self._items += self._tail
            self._tail = []
            self._cut()
        return self._items

    def _cut(self) -> None:
        limit = self._limit if self.source is None else self.limit
        items = self._items
        if limit is not None and items is not None and len(items) > limit:
            del items[: len(items) - limit]

    def item(self, index: int) -> Value | None:
        if self._items is None and self._tail:
            self._load()
        return super().item(index)

    def mutable(self, space: Space) -> list[Value]:
        """The items, about to be mutated."""
        items = self.items
        space.mark_mutated(self)
        self.state += 1
        if self.source is not None and self.original is None:
            self.original = list(items)
        return items

    @property
    def changed(self) -> bool:
        """Whether the traced program has changed this existing deque."""
        return self.original is not None or bool(self._tail)

    def as_host(self, space: Space) -> Any:
        if self.cls is not deque:
            raise NotKnown(self)
        return deque(self.host_items(space), self.limit)

    # -- both ends --------------------------------------------------------------------------------------------------

    def append(self, space: Space, item: Value, /) -> Value:
        if self._items is None:
            space.mark_mutated(self)
            self.state += 1
            self._tail.append(item)
            return NONE
        self.mutable(space).append(item)
        self._cut()
        return NONE

    def appendleft(self, space: Space, item: Value, /) -> Value:
        items = self.mutable(space)
        items.insert(0, item)
        if self.limit is not None and len(items) > self.limit:
            items.pop()
        return NONE

    def extend(self, space: Space, iterable: Value, /) -> Value:
        return self._extend(space, iterable, self.append)

    def extendleft(self, space: Space, iterable: Value, /) -> Value:
        return self._extend(space, iterable, self.appendleft)

    def _extend(self, space: Space, iterable: Value, add: Any) -> Value:
        iterable = iterable.force()
        for item in list(self.items) if iterable is self else space.iterate(iterable):
            add(space, item)
        return NONE

    def pop(self, space: Space) -> Value:
        if not self.items:
            raise space.error(IndexError, "pop from an empty deque")
        return self.mutable(space).pop()

    def popleft(self, space: Space) -> Value:
        if not self.items:
            raise space.error(IndexError, "pop from an empty deque")
        return self.mutable(space).pop(0)

    def clear(self, space: Space) -> Value:
        if self.items:
            self.mutable(space).clear()
        return NONE

    def rotate(self, space: Space, n: Value = Constant(1), /) -> Value:  # noqa: B008 (immutable)
        steps = space.int_(n)
        if len(self.items) > 1:
            items = self.mutable(space)
            cut = -steps % len(items)
            items[:] = items[cut:] + items[:cut]
        return NONE

    def reverse(self, space: Space) -> Value:
        state = self.state
        self.mutable(space).reverse()
        self.state = state
        return NONE

    # -- anywhere ---------------------------------------------------------------------------------------------------

    def insert(self, space: Space, index: Value, item: Value, /) -> Value:
        where = space.int_(index)
        if self.limit is not None and len(self.items) >= self.limit:
            raise space.error(IndexError, "deque already at its maximum size")
        self.mutable(space).insert(max(-MAXSIZE, min(MAXSIZE, where)), item)
        return NONE

    def remove(self, space: Space, item: Value, /) -> Value:
        found = self.search(space, item, 0, len(self.items), IndexError, "deque mutated during remove().")
        if found is None:
            raise _not_found(space, item, deque().remove)
        del self.mutable(space)[found]
        return NONE

    def search(
        self,
        space: Space,
        item: Value,
        start: int,
        stop: int,
        kind: type[Exception] = RuntimeError,
        words: str = _MUTATED,
    ) -> int | None:
        """The first position whose item equals `item`; a deque that changes meanwhile is an error."""
        state = self.state
        for index in range(start, min(stop, len(self.items))):
            same = space.equal(self.items[index], item)
            if self.state != state:
                raise space.error(kind, words)
            if same:
                return index
        return None

    def index(self, space: Space, item: Value, start: Value | None = None, stop: Value | None = None, /) -> Value:
        first, last = self.bounds(space, start, stop)
        found = self.search(space, item, first, last)
        if found is None:
            raise _not_found(space, item, deque().index)
        return Constant(found)

    def count(self, space: Space, item: Value, /) -> Value:
        state, count = self.state, 0
        for found in list(self.items):
            count += space.equal(found, item)
            if self.state != state:
                raise space.error(RuntimeError, _MUTATED)
        return Constant(count)

    def tp_contains(self, space: Space, item: Value, /) -> Value:
        return FALSE if self.search(space, item, 0, MAXSIZE) is None else TRUE

    def tp_len(self, space: Space) -> Value:
        return Constant(len(self.items))

    def position(self, space: Space, key: Value) -> int:
        if not issubclass(key.cls, int) and space.special(key, "__index__") is None:
            raise space.error(TypeError, f"sequence index must be integer, not '{key.type_name(space)}'")
        return space.int_(key)

    def _where(self, space: Space, key: Value) -> int:
        index, count = self.position(space, key.force()), len(self.items)
        if not -count <= index < count:
            raise space.error(IndexError, "deque index out of range")
        return index

    def tp_getitem(self, space: Space, key: Value, /) -> Value:
        return self.items[self._where(space, key)]

    def tp_setitem(self, space: Space, key: Value, item: Value, /) -> Value:
        where, state = self._where(space, key), self.state
        self.mutable(space)[where] = item
        self.state = state
        return NONE

    def tp_delitem(self, space: Space, key: Value, /) -> Value:
        where = self._where(space, key)
        del self.mutable(space)[where]
        return NONE

    # -- whole deques -----------------------------------------------------------------------------------------------

    def tp_iter(self, space: Space) -> Value:
        return DequeIterator(self)

    def tp_reversed(self, space: Space) -> Value:
        return DequeReverseIterator(self)

    def copy(self, space: Space) -> Value:
        return self._copied(space)

    def tp_copy(self, space: Space) -> Value:
        return self._copied(space)

    def tp_reduce(self, space: Space) -> Value:
        args = [] if self.limit is None else [space.new_tuple([]), Constant(self.limit)]
        return reduction(space, self.cls, args, space.call_method(self, "__getstate__"), space.iter(self))

    def _copied(self, space: Space) -> DequeValue:
        """`deque_copy`: a subclass makes its own copy, of which only the kind is checked."""
        if self.cls is deque:
            return DequeValue(self.items, self.limit)
        args = [self] if self.limit is None else [self, Constant(self.limit)]
        result = space.call(space.class_value(self.cls), list(args), {}).force()
        if not isinstance(result, DequeValue):
            text = f"{self.type_name(space)}() must return a deque, not {result.type_name(space)}"
            raise space.error(TypeError, text)
        return result

    def tp_add(self, space: Space, other: Value, /) -> Value:
        other = other.force()
        if not isinstance(other, DequeValue):
            raise space.error(TypeError, f'can only concatenate deque (not "{other.type_name(space)}") to deque')
        result = self._copied(space)
        result.extend(space, other)
        return result

    def tp_iadd(self, space: Space, iterable: Value, /) -> Value:
        self.extend(space, iterable)
        return self

    def tp_mul(self, space: Space, count: Value, /) -> Value:
        times = self.repetitions(space, count)
        result = self._copied(space)
        result.repeat(space, times)
        return result

    def tp_rmul(self, space: Space, count: Value, /) -> Value:
        return self.tp_mul(space, count)

    def tp_imul(self, space: Space, count: Value, /) -> Value:
        self.repeat(space, self.repetitions(space, count))
        return self

    def repeat(self, space: Space, times: int) -> None:
        """`self *= times`"""
        items = self.mutable(space)
        items *= times
        self._cut()

    def _ordered(self, space: Space, symbol: str, other: Value) -> Value:
        other = other.force()
        if symbol in ("==", "!=") and isinstance(other, DequeValue):
            if other is self:
                return TRUE if symbol == "==" else FALSE
            if len(self.items) != len(other.items):
                return TRUE if symbol == "!=" else FALSE
        return self.compared(space, symbol, other)

    def tp_eq(self, space: Space, other: Value, /) -> Value:
        return self._ordered(space, "==", other)

    def tp_ne(self, space: Space, other: Value, /) -> Value:
        return self._ordered(space, "!=", other)

    def tp_lt(self, space: Space, other: Value, /) -> Value:
        return self._ordered(space, "<", other)

    def tp_le(self, space: Space, other: Value, /) -> Value:
        return self._ordered(space, "<=", other)

    def tp_gt(self, space: Space, other: Value, /) -> Value:
        return self._ordered(space, ">", other)

    def tp_ge(self, space: Space, other: Value, /) -> Value:
        return self._ordered(space, ">=", other)

    def tp_repr(self, space: Space) -> Value:
        with nested(space, IN_REPR):
            inner = self.shown(space, "[", "]").as_host(space)
        if inner == "[...]" and self.items:
            return Constant(inner)
        end = "" if self.limit is None else f", maxlen={self.limit}"
        return Constant(f"{space.class_name(self.cls)}({inner}{end})")

    # -- residual ---------------------------------------------------------------------------------------------------

    def shell(self, writer: Writer) -> str:
        name = writer.const(deque)
        end = "" if self.limit is None else f"(), {self.limit}"
        return f"{name}({end})" if self.cls is deque else f"{name}.__new__({writer.const(self.cls)})"

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        parts = ", ".join([writer.expr(item) for item in self.items])
        shell = writer.shell_of(self)
        maker = writer.const(deque)
        if self.cls is deque:
            if shell is None:
                end = "" if self.limit is None else f", {self.limit}"
                return writer.assign("items", f"{maker}([{parts}]{end})")
            writer.line(f"{shell}.extend([{parts}])")
            return shell
        name = shell or writer.assign(self.cls.__name__.lower(), self.shell(writer))
        writer.name_value(self, name)
        writer.line(f"{maker}.__init__({name}, [{parts}], {self.limit})")
        fill(self, writer, name)
        return name

    def effects(self, writer: Writer) -> list[str]:
        return [*self.slot_effects(writer), *self._item_effects(writer)]

    def _item_effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        name = writer.source(self.source)
        if self._items is None:
            return self._calls(writer, name, [], self._tail)
        if self.original is None:
            return []
        old, new = self.original, self._items
        if self.state == 0:  # iterators go on over what was only replaced
            changed = [(str(i), writer.expr(item)) for i, item in enumerate(new) if item is not old[i]]
            return [self._call(writer, name, "__setitem__", *places) for places in changed]
        gone = next(k for k in range(len(old) + 1) if _continues(old, k, new))
        added = new[len(old) - gone :]
        if gone == len(old) and old:
            return self._calls(writer, name, ["clear"], added)
        return self._calls(writer, name, ["popleft"] * gone, added)

    def _calls(self, writer: Writer, name: str, first: list[str], added: list[Value]) -> list[str]:
        parts = [writer.expr(item) for item in added]
        lines = [self._call(writer, name, method) for method in first]
        if len(parts) == 1:
            lines.append(self._call(writer, name, "append", parts[0]))
        elif parts:
            lines.append(self._call(writer, name, "extend", f"[{', '.join(parts)}]"))
        return lines

    def _call(self, writer: Writer, name: str, method: str, *args: str) -> str:
        if self.cls is deque:
            return f"{name}.{method}({', '.join(args)})"
        return f"{writer.const(deque)}.{method}({', '.join((name, *args))})"


def _continues(old: list[Value], gone: int, new: list[Value]) -> bool:
    """Whether the new items begin with the old ones less the first `gone`."""
    left = len(old) - gone
    return left <= len(new) and all(old[gone + i] is new[i] for i in range(left))


class _DequeIterator(IteratorValue):
    """An iterator over a deque, broken by any change of it."""

    __slots__ = ("deque", "index", "size", "state")

    host_type: ClassVar[Any]
    backwards = False

    def __init__(self, items: DequeValue) -> None:
        super().__init__(self.host_type)
        self.deque = items
        self.index = 0
        self.size = len(items.items)
        self.state = items.state

    @classmethod
    def begin(cls, space: Space, args: tuple[Value, ...], kwargs: dict[str, Value]) -> Value:
        """`dequeiter_new`: some steps on; names of arguments are not looked at."""
        items = args[0].force() if args else None
        if not isinstance(items, DequeValue) or len(args) > 2:
            return bad_call(space, cls.host_type, list(args), {})
        steps = space.int_(args[1]) if len(args) > 1 else 0
        made = cls(items)
        made.index = min(max(steps, 0), made.size)
        return made

    def tp_length_hint(self, space: Space) -> Value:
        if self.source is not None:
            self.open(space)
        return Constant(max(self.size - self.index, 0))

    def reduced(self, space: Space) -> Value:
        left = max(self.size - self.index, 0)
        return reduction(space, self.cls, [self.deque, Constant(len(self.deque.items) - left)])

    def produce(self, space: Space) -> Value | None:
        items = self.deque.items
        if self.deque.state != self.state:
            space.mark_mutated(self)
            self.index = MAXSIZE
            raise space.error(RuntimeError, _MUTATED)
        if self.index >= len(items):
            return None
        space.mark_mutated(self)
        self.index += 1
        return items[-self.index] if self.backwards else items[self.index - 1]

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        method = writer.const(deque.__reversed__ if self.backwards else deque.__iter__)
        if self.deque.state != self.state:
            items = f"{writer.const(deque)}([None]) * {max(self.size - self.index, 0)}"
            return broken(writer, items, lambda other: f"{method}({other})", ".append(None)")
        made = f"{method}({writer.expr(self.deque)})"
        if self.deque.changed or writer.is_unfinished(self.deque):
            return over_changed(writer, made, self.index)
        return advanced(writer, made, self.index)


@iterator_type(type(iter(deque())))
class DequeIterator(_DequeIterator):
    """`iter(deque())`."""

    __slots__ = ()
    host_type: ClassVar[Any] = type(iter(deque()))

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        return DequeIterator.begin(space, args, kwargs)


@iterator_type(type(reversed(deque())))
class DequeReverseIterator(_DequeIterator):
    """`reversed(deque())`."""

    __slots__ = ()
    host_type: ClassVar[Any] = type(reversed(deque()))
    backwards = True

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        return DequeReverseIterator.begin(space, args, kwargs)


pure(deque.__dict__["__class_getitem__"])
