"""What lists and deques share: they change, and an existing one gets its items when the graph has run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Self

from stator.guards.source import Source
from stator.models.classes.instance import fill, slot_effects
from stator.models.containers.sequence import Sequence
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.protocol import NONE
from stator.space.space import Space
from stator.space.value import Constant, NotKnown, Value

__all__ = ["MutableSequence"]


class _AllOf(NamedTuple):
    """The items that an existing sequence had before the trace; nobody has asked for them."""

    whole: Sequence


class MutableSequence(Sequence):
    """A list or deque.

    What is put at the ends of an existing one whose items nobody has asked for waits in `_head` and `_tail`, so that it
    needs no guard; so do all the items of another such sequence, which is asked for them before it changes.
    In `_stored` waits what is assigned at a symbol: the key, where the item was found there, and the new one.
    """

    __slots__ = ("_head", "_stored", "_tail", "_takers", "original", "version")

    def __init__(self, items: list[Value] | None = None, cls: type | None = None) -> None:
        super().__init__([] if items is None else list(items), cls)
        self._head: list[Value] = []
        self._tail: list[Value | _AllOf] = []
        #: those in whose `_tail` all items of this one wait
        self._takers: list[MutableSequence] = []
        self._stored: tuple[Value, Source, Value] | None = None
        #: the items before the first mutation of an existing one
        self.original: list[Value] | None = None
        #: counts the mutations
        self.version = 0

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Self:
        self = super().from_host(space, host, source)
        self._items = None
        return self

    # -- state ------------------------------------------------------------------------------------------------------

    def _load(self) -> list[Value]:
        items = super()._load()
        if self._head or self._tail or self._stored is not None:
            self.original = list(items)
            if self._stored is not None:
                key, _, item = self._stored
                self._stored = None
                items[self.space.int_(key)] = item
            items[:0] = self._head
            for part in self._tail:
                items += part.whole.items if isinstance(part, _AllOf) else [part]
            self._head, self._tail = [], []
            self.cut()
        return items

    def cut(self) -> None:
        """Let go of the items that are too many."""

    def mutable(self, space: Space) -> list[Value]:
        """The items, about to be mutated."""
        self.give_items()
        items = self.items
        space.mark_mutated(self)
        self.version += 1
        if self.source is not None and self.original is None:
            self.original = list(items)
        return items

    def give_items(self) -> None:
        """It is about to change: those that are to get its items get them as they are."""
        takers, self._takers = self._takers, []
        for taker in takers:
            if taker._items is None:
                taker._load()

    @property
    def changed(self) -> bool:
        """Whether the traced program has changed this existing one."""
        return self.original is not None or bool(self._tail or self._head) or self._stored is not None

    def selected(self, space: Space, key: Value) -> Value | None:
        if self._stored is None:
            return super().selected(space, key)
        found = key.select(space, self, self.kind.__getitem__)
        return self._stored[2] if found is not None and found.source is self._stored[1] else None

    def store(self, space: Space, key: Value, item: Value) -> bool:
        """`self[key] = item` of an existing one at a symbol, if it can wait."""
        self.give_items()
        place = None if self.changed or self._items is not None else self.selected(space, key)
        if place is None or place.source is None:
            return False
        space.mark_mutated(self)
        self.version += 1
        self._stored = key, place.source, item
        return True

    def item(self, index: int) -> Value | None:
        if index < len(self._head):
            return self._head[index]
        if self._stored is not None or self._head:
            self._load()
        return super().item(index)

    def dropped(self, hosts: list[Host]) -> list[Host]:
        if self._stored is not None or (self._tail and self.kind is not list):  # others may be limited
            self._load()
        return super().dropped(hosts)

    def held(self) -> Iterable[Value]:
        held = super().held()
        if not self.changed or self._items is not None:
            return held
        tail = [part.whole if isinstance(part, _AllOf) else part for part in self._tail]
        return (*held, *self._head, *tail, *(() if self._stored is None else self._stored[2:]))

    def as_host(self, space: Space) -> Host:
        if self.cls is not self.kind:
            raise NotKnown(self)
        return self.host_items(space)

    def tp_len(self, space: Space) -> Value:
        if not (self._head or self._tail) or self._items is not None:
            return super().tp_len(space)
        if self.kind is not list:
            return Constant(len(self.items))
        wholes = [part.whole for part in self._tail if isinstance(part, _AllOf)]
        length = space.binary("+", super().tp_len(space), Constant(len(self._head) + len(self._tail) - len(wholes)))
        for whole in wholes:
            length = space.binary("+", length, whole.tp_len(space))
        return length

    def from_end(self, space: Space, distance: int) -> Value | None:
        waiting = self.waiting_at(distance)
        return super().from_end(space, distance) if waiting is None else waiting

    def waiting_at(self, distance: int) -> Value | None:
        """The item at a distance from the end, if it is one that waits there."""
        last = self._tail[-distance:] if self._items is None and distance <= len(self._tail) else []
        return None if not last or any(isinstance(part, _AllOf) for part in last) else last[0]  # type: ignore[return-value]

    def _last(self, space: Space, distance: int) -> Value | None:
        added = len(self._tail)
        as_it_was = not self._head and self._stored is None and not any(isinstance(part, _AllOf) for part in self._tail)
        if not as_it_was or (added and self.kind is not list):
            items = self.items
            return items[-distance] if distance <= len(items) else None
        return super()._last(space, distance - added)

    def left_with(self, source: Source) -> tuple[int, list[tuple[Source, Value]]]:
        count, items = super().left_with(source)
        for part in self._tail:
            count += part.whole.kind.__len__(part.whole.host) if isinstance(part, _AllOf) else 1
        return count + len(self._head), items if self._stored is None else [self._stored[1:]]

    # -- methods ----------------------------------------------------------------------------------------------------

    def append(self, space: Space, item: Value, /) -> Value:
        self.grow(space, [item])
        return NONE

    def grow(self, space: Space, items: list[Value]) -> None:
        """Put items at the end."""
        self.give_items()
        if self._items is None:
            space.mark_mutated(self)
            self.version += 1
            self._tail += items
        else:
            self.mutable(space).extend(items)

    def take(self, space: Space, whole: Value) -> bool:
        """Put all items of an existing sequence at the end, if none of both is asked for how many there are."""
        self.give_items()
        if self._items is not None or whole is self or not isinstance(whole, Sequence) or whole.cls is not whole.kind:
            return False
        if whole.source is None or whole.source.is_constant or whole._items is not None or whole.changed:
            return False
        space.mark_mutated(self)
        self.version += 1
        self._tail.append(_AllOf(whole))
        if isinstance(whole, MutableSequence):
            whole._takers.append(self)
        return True

    def put_first(self, space: Space, item: Value) -> bool:
        """Put an item at the front, if nothing else is asked for that."""
        self.give_items()
        if self._items is not None or self._stored is not None:
            return False
        space.mark_mutated(self)
        self.version += 1
        self._head.insert(0, item)
        return True

    def extend(self, space: Space, iterable: Value, /) -> Value:
        raise NotImplementedError

    def clear(self, space: Space) -> Value:
        if self.items:
            self.mutable(space).clear()
        return NONE

    def tp_iadd(self, space: Space, iterable: Value, /) -> Value:
        self.extend(space, iterable)
        return self

    def tp_imul(self, space: Space, count: Value, /) -> Value:
        times = self.repetitions(space, count)
        items = self.mutable(space)
        items *= times
        self.cut()
        return self

    # -- generated code ---------------------------------------------------------------------------------------------

    def shell(self, writer: Writer) -> str:
        return self.display(writer, "") if self.cls is self.kind else self._blank(writer)

    def _blank(self, writer: Writer) -> str:
        return f"{writer.const(self.kind)}.__new__({writer.const(self.cls)})"

    def display(self, writer: Writer, items: str) -> str:
        """The expression of a new one of the builtin type that has the items."""
        raise NotImplementedError

    def filling(self, writer: Writer, name: str, items: str) -> str:
        """The line, if any, that gives an instance of a subclass, made without its constructor, the items."""
        raise NotImplementedError

    def rebuilt(self, writer: Writer) -> str:
        items = ", ".join([writer.expr(item) for item in self.items])
        shell = writer.shell_of(self)
        if self.cls is self.kind:
            if shell is None:
                return writer.assign("items", self.display(writer, items))
            writer.line(f"{shell}.extend([{items}])")
            return shell
        name = shell or writer.assign(self.cls.__name__.lower(), self._blank(writer))
        writer.name_value(self, name)
        if line := self.filling(writer, name, items):
            writer.line(line)
        fill(self, writer, name)
        return name

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        name = writer.source(self.source)
        lines = slot_effects(self, writer) if self._slots else []
        if self._items is None:
            if self._stored is not None:
                key, _, item = self._stored
                lines += [self.native_call(writer, name, "__setitem__", writer.expr(key), writer.expr(item))]
            if self._head:
                lines += self.put_before(writer, name, [writer.expr(item) for item in self._head])
            return lines + self.waiting(writer, name)
        return lines if self.original is None else lines + self.rewrites(writer, name, self.original, self._items)

    def rewrites(self, writer: Writer, name: str, old: list[Value], new: list[Value]) -> list[str]:
        """The lines that make the new items of the real one's old items."""
        raise NotImplementedError

    def put_before(self, writer: Writer, name: str, items: list[str]) -> list[str]:
        """The lines that put items at the front of the real one."""
        raise NotImplementedError

    def waiting(self, writer: Writer, name: str) -> list[str]:
        """The lines that put at the end of the real one what waits for it."""
        lines: list[str] = []
        items: list[Value] = []
        for part in self._tail:
            if isinstance(part, _AllOf):
                lines += self.additions(writer, name, items)
                lines.append(self.native_call(writer, name, "extend", writer.expr(part.whole)))
                items = []
            else:
                items.append(part)
        return lines + self.additions(writer, name, items)

    def additions(self, writer: Writer, name: str, items: list[Value]) -> list[str]:
        """The line, if any, that puts items at the end of the real one."""
        parts = [writer.expr(item) for item in items]
        if len(parts) == 1:
            return [self.native_call(writer, name, "append", parts[0])]
        return [self.native_call(writer, name, "extend", f"[{', '.join(parts)}]")] if parts else []

    def native_call(self, writer: Writer, name: str, method: str, *args: str) -> str:
        """A call of the builtin type's own method."""
        if self.cls is self.kind:
            return f"{name}.{method}({', '.join(args)})"
        return f"{writer.const(self.kind)}.{method}({', '.join((name, *args))})"
