"""collections.deque."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Self

from stator import errors
from stator.guards.source import CallSource, ItemSource, Source
from stator.models.containers.mutable_sequence import MutableSequence
from stator.models.containers.sequence import MAXSIZE
from stator.models.iterators.container_iterator import ContainerIterator, broken
from stator.models.iterators.iterator import iterator_type, reduction
from stator.space.facts import constant
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import bool_value
from stator.space.protocol import NONE, bad_call, models, pure
from stator.space.recursion import IN_REPR, nested
from stator.space.space import Space
from stator.space.value import Constant, Unsupported, Value

__all__ = ["DequeValue"]

_MUTATED = "deque mutated during iteration"


def deque_items(host: Host) -> list[Host]:
    """The items of a deque as a list, for guards and generated code."""
    return [*deque.__iter__(host)]


@models(deque)
class DequeValue(MutableSequence):
    """A deque, or an instance of a subclass."""

    __slots__ = ("_limit",)
    FIELDS = {"maxlen": lambda self, space: Constant(self.limit)}

    kind = deque
    plain_iters = (deque.__iter__,)

    def __init__(self, items: list[Value] | None = None, cls: type | None = None, limit: int | None = None) -> None:
        super().__init__(items, cls)
        self._limit: int | None = limit
        self.cut()

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Self:
        self = super().from_host(space, host, source)
        self._limit = -1
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> Self:
        return cls([space.fresh(item) for item in deque.__iter__(host)], type(host), host.maxlen)

    @staticmethod
    def tp_new(space: Space, cls: Value, *args: Value, **kwargs: Value) -> Value:
        return DequeValue([], cls.force().as_host(space))

    def tp_init(self, space: Space, iterable: Value | None = None, maxlen: Value = NONE) -> Value:
        limit = space.known(maxlen)
        if limit is not None:
            if not maxlen.isa(int):
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

    def build(self, items: list[Value]) -> Value:
        return DequeValue(items, limit=self.limit)

    # -- state ------------------------------------------------------------------------------------------------------

    @property
    def limit(self) -> int | None:
        """`maxlen`."""
        if self._limit == -1:
            assert self.source is not None
            self._limit = constant(self.space, self, "maxlen")
        return self._limit

    def _child(self, index: int) -> Value:
        assert self.source is not None
        items = CallSource(deque_items, self.source, "deque_items")
        return self.space.wrap(deque.__getitem__(self.host, index), ItemSource(items, index))

    def cut(self) -> None:
        limit = self._limit if self.source is None else self.limit
        items = self._items
        if limit is not None and items is not None and len(items) > limit:
            del items[: len(items) - limit]

    def item(self, index: int) -> Value | None:
        if self._items is None and self._tail:
            self._load()
        return super().item(index)

    def waiting_at(self, distance: int) -> Value | None:
        waiting = super().waiting_at(distance)
        return waiting if waiting is None or self.limit is None or distance <= self.limit else None

    def grow(self, space: Space, items: list[Value]) -> None:
        super().grow(space, items)
        self.cut()

    def as_host(self, space: Space) -> Host:
        return deque(super().as_host(space), self.limit)

    # -- both ends --------------------------------------------------------------------------------------------------

    def appendleft(self, space: Space, item: Value, /) -> Value:
        if self.limit is None and self.put_first(space, item):
            return NONE
        items = self.mutable(space)
        items.insert(0, item)
        if self.limit is not None and len(items) > self.limit:
            items.pop()
        return NONE

    def extend(self, space: Space, iterable: Value, /) -> Value:
        whole = iterable.force()
        taken = whole.cls in (list, tuple, deque) and self.take(space, whole)
        return NONE if taken else self._extend(space, whole, self.append)

    def extendleft(self, space: Space, iterable: Value, /) -> Value:
        return self._extend(space, iterable, self.appendleft)

    def _extend(self, space: Space, iterable: Value, add: Callable[[Space, Value], Value]) -> Value:
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

    def rotate(self, space: Space, n: Value = Constant(1), /) -> Value:  # noqa: B008 (immutable)
        steps = space.int_(n)
        if len(self.items) > 1:
            items = self.mutable(space)
            cut = -steps % len(items)
            items[:] = items[cut:] + items[:cut]
        return NONE

    def reverse(self, space: Space) -> Value:
        version = self.version
        self.mutable(space).reverse()
        self.version = version
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
            raise self.not_in(space, item, "remove")
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
        version = self.version
        for index in range(start, min(stop, len(self.items))):
            same = space.equal(self.items[index], item)
            if self.version != version:
                raise space.error(kind, words)
            if same:
                return index
        return None

    def index(self, space: Space, item: Value, start: Value | None = None, stop: Value | None = None, /) -> Value:
        first, last = self.bounds(space, start, stop)
        found = self.search(space, item, first, last)
        if found is None:
            raise self.not_in(space, item, "index")
        return Constant(found)

    def count(self, space: Space, item: Value, /) -> Value:
        version, count = self.version, 0
        for found in list(self.items):
            count += space.equal(found, item)
            if self.version != version:
                raise space.error(RuntimeError, _MUTATED)
        return Constant(count)

    def tp_contains(self, space: Space, item: Value, /) -> Value:
        return bool_value(self.search(space, item, 0, MAXSIZE) is not None)

    def position(self, space: Space, key: Value) -> int:
        if not key.isa(int) and space.special(key, "__index__") is None:
            raise space.error(TypeError, f"sequence index must be integer, not '{key.type_name(space)}'")
        return space.int_(key)

    def _where(self, space: Space, key: Value) -> int:
        index, count = self.position(space, key.force()), len(self.items)
        if not -count <= index < count:
            raise space.error(IndexError, "deque index out of range")
        return index

    def tp_getitem(self, space: Space, key: Value, /) -> Value:
        key = key.force()
        if key.constant and key.cls is int and key.host < 0:
            waiting = self.waiting_at(-key.host)
            if waiting is not None:
                return waiting
        return self.items[self._where(space, key)]

    def tp_setitem(self, space: Space, key: Value, item: Value, /) -> Value:
        where, version = self._where(space, key), self.version
        self.mutable(space)[where] = item
        self.version = version
        return NONE

    def tp_delitem(self, space: Space, key: Value, /) -> Value:
        where = self._where(space, key)
        del self.mutable(space)[where]
        return NONE

    # -- whole deques -----------------------------------------------------------------------------------------------

    def tp_iter(self, space: Space) -> Value:
        return DequeIterator.over(self)

    def tp_reversed(self, space: Space) -> Value:
        return DequeReverseIterator.over(self)

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
            return DequeValue(self.items, limit=self.limit)
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

    def tp_mul(self, space: Space, count: Value, /) -> Value:
        times = self.repetitions(space, count)
        return self._copied(space).tp_imul(space, Constant(times))

    def tp_richcompare(self, space: Space, symbol: str, other: Value) -> Value:
        at_once = symbol in ("==", "!=") and isinstance(other, DequeValue)
        if at_once and (other is self or len(self.items) != len(other.items)):  # type: ignore[attr-defined]
            return bool_value((other is self) is (symbol == "=="))
        return super().tp_richcompare(space, symbol, other)

    def tp_repr(self, space: Space) -> Value:
        with nested(space, IN_REPR):
            inner = self.shown(space, "[", "]").as_host(space)
        if inner == "[...]" and self.items:
            return Constant(inner)
        end = "" if self.limit is None else f", maxlen={self.limit}"
        return Constant(f"{space.class_name(self.cls)}({inner}{end})")

    # -- generated code ---------------------------------------------------------------------------------------------

    def display(self, writer: Writer, items: str) -> str:
        return f"{writer.const(deque)}([{items}]{'' if self.limit is None else f', {self.limit}'})"

    def filling(self, writer: Writer, name: str, items: str) -> str:
        return f"{writer.const(deque)}.__init__({name}, [{items}], {self.limit})"

    def put_before(self, writer: Writer, name: str, items: list[str]) -> list[str]:
        return [self.native_call(writer, name, "appendleft", item) for item in reversed(items)]

    def rewrites(self, writer: Writer, name: str, old: list[Value], new: list[Value]) -> list[str]:
        if self.version == 0:  # iterators go on over what was only replaced
            changed = [(str(i), writer.expr(item)) for i, item in enumerate(new) if item is not old[i]]
            return [self.native_call(writer, name, "__setitem__", *places) for places in changed]
        gone = next(k for k in range(len(old) + 1) if _continues(old, k, new))
        first = ["clear"] if gone == len(old) and old else ["popleft"] * gone
        added = self.additions(writer, name, new[len(old) - gone :])
        return [*(self.native_call(writer, name, method) for method in first), *added]


def _continues(old: list[Value], gone: int, new: list[Value]) -> bool:
    """Whether the new items begin with the old ones less the first `gone`."""
    left = len(old) - gone
    return left <= len(new) and all(old[gone + i] is new[i] for i in range(left))


class _DequeIterator(ContainerIterator):
    """An iterator over a deque, broken by any change of it."""

    __slots__ = ()

    shown: DequeValue
    backwards = False

    @classmethod
    def over(cls, items: DequeValue, steps: int = 0) -> Self:
        """A new one, some steps on."""
        size = len(items.items)
        return cls.of(cls.host_type, shown=items, size=size, version=items.version, position=min(max(steps, 0), size))

    @classmethod
    def begin(cls, space: Space, args: tuple[Value, ...]) -> Value:
        """`dequeiter_new`: names of arguments are not looked at."""
        items = args[0].force() if args else None
        if not isinstance(items, DequeValue) or len(args) > 2:
            return bad_call(space, cls.host_type, list(args), {})
        return cls.over(items, space.int_(args[1]) if len(args) > 1 else 0)

    def left(self, space: Space) -> int:
        return self.size - self.position

    def arguments(self, space: Space) -> list[Value]:
        left = max(self.size - self.position, 0)
        return [self.shown, Constant(len(self.shown.items) - left)]

    def produce(self, space: Space) -> Value | None:
        items = self.shown.items
        if self.shown.version != self.version:
            space.mark_mutated(self)
            self.position = MAXSIZE
            raise space.error(RuntimeError, _MUTATED)
        if self.position >= len(items):
            return None
        space.mark_mutated(self)
        self.position += 1
        return items[-self.position] if self.backwards else items[self.position - 1]

    def broken(self, writer: Writer) -> str:
        items = f"{writer.const(deque)}([None]) * {max(self.size - self.position, 0)}"
        return broken(writer, items, lambda other: self.iterated(writer, other), ".append(None)")

    def iterated(self, writer: Writer, target: str) -> str:
        return f"{writer.const(deque.__reversed__ if self.backwards else deque.__iter__)}({target})"


@iterator_type(type(iter(deque())))
class DequeIterator(_DequeIterator):
    """`iter(deque())`."""

    __slots__ = ()

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        return DequeIterator.begin(space, args)


@iterator_type(type(reversed(deque())))
class DequeReverseIterator(_DequeIterator):
    """`reversed(deque())`."""

    __slots__ = ()
    backwards = True

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        return DequeReverseIterator.begin(space, args)


pure(deque.__dict__["__class_getitem__"])
