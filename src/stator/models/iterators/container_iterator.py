"""Iterators over containers that must not change meanwhile: dicts, sets and deques."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

from stator import errors
from stator._core import exchange
from stator.guards.guard import Equals
from stator.guards.raw import raw_length
from stator.guards.source import CallSource, Source
from stator.models.iterators.iterator import IteratorValue, advance, advanced, reduction
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.signals import DoFirst
from stator.space.space import Space
from stator.space.value import Unsupported, Value

__all__ = ["ContainerIterator", "TableIterator", "broken"]


# -- what generated code and guards call ------------------------------------------------------------------------------


def advance_broken(iterator: Iterator[Host], steps: int) -> None:
    """Take that many steps; an iterator whose container has changed since is as broken as it would be."""
    with contextlib.suppress(RuntimeError):
        for _ in range(steps):
            next(iterator, None)


def iterated(iterator: Iterator[Host]) -> Host:
    """The dict or set that an iterator runs over."""
    for referent in gc.get_referents(iterator):
        if isinstance(referent, (dict, set, frozenset)):
            return referent
    raise LookupError("the iterator is exhausted")


def position(iterator: Iterator[Host]) -> int:
    """How many steps an iterator has taken; -1 where it is exhausted, -2 where the container has changed."""
    try:
        container = iterated(iterator)
        return raw_length(container) - len(iterator.__reduce__()[1][0])
    except LookupError:
        return -1
    except RuntimeError:
        return -2


def _has_item(iterator: Iterator[Host]) -> bool:
    """Whether an iterator over a dict or set has something to give."""
    return 0 <= position(iterator) < raw_length(iterated(iterator))


def _is_at_end(iterator: Iterator[Host]) -> bool:
    """Whether it has nothing to give, and its container has not changed."""
    steps = position(iterator)
    return steps == -1 or (steps >= 0 and steps == raw_length(iterated(iterator)))


def _left(iterator: Iterator[Host]) -> Host:
    """The container, if it is not known yet that there is nothing more."""
    return iterated(iterator) if position(iterator) >= 0 else None


def _next_item(iterator: Iterator[Host]) -> Host:
    """What an iterator over a dict or set gives next."""
    return iterator.__reduce__()[1][0][0]


def over_changed(writer: Writer, expression: str, steps: int) -> str:
    """An iterator made by the expression, some steps on, over a container that gets its contents later than it."""
    name = writer.assign("iterator", expression)
    writer.late.append(f"{writer.const(settle)}({name}, {expression}, {steps})")
    return name


def broken(writer: Writer, container: str, iterate: Callable[[str], str], change: str) -> str:
    """An iterator whose next step says that its container has changed: over another, changed for the purpose."""
    other = writer.assign("container", container)
    iterator = writer.assign("iterator", iterate(other))
    writer.line(f"{other}{change}")
    return iterator


def settle(iterator: Iterator[Host], other: Iterator[Host], steps: int) -> None:
    """An iterator goes on from where another, made when the container was as it is, is after some steps."""
    advance(other, steps)
    exchange(iterator, other)


# -- the models -------------------------------------------------------------------------------------------------------


class ContainerIterator(IteratorValue):
    """An iterator that breaks when its container has changed; `shown` is the container, None once it is exhausted."""

    __slots__ = ("position", "shown", "size", "version")

    shown: Any
    #: how many items it has given
    position: int
    #: how many items the container had, and which of its versions it was, when the iterator was made
    size: int
    version: int

    def iterated(self, writer: Writer, target: str) -> str:
        """The expression of a new iterator over the real container; `target` may be the expression of another one."""
        raise NotImplementedError

    def broken(self, writer: Writer) -> str:
        """Emit the code that makes one whose next step says that its container has changed."""
        raise NotImplementedError

    def has_ended(self) -> bool:
        """Whether it gives nothing more whatever becomes of the container."""
        return self.shown is None

    def rebuilt(self, writer: Writer) -> str:
        if self.has_ended():
            return advanced(writer, self.iterated(writer, self.emptied(writer)), 1)
        shown = self.shown
        if shown.version != self.version:
            return self.broken(writer)
        made = self.iterated(writer, writer.expr(shown))
        if shown.changed or writer.is_unfinished(shown):  # the real one is changed only after this code has run
            return over_changed(writer, made, self.position)
        return advanced(writer, made, self.position)

    def emptied(self, writer: Writer) -> str:
        """The expression of an empty container of the kind."""
        raise NotImplementedError


class TableIterator(ContainerIterator):
    """An iterator over a dict or set: what it will give is known when it is made."""

    __slots__ = ("entries",)

    entries: list[Any]
    advancing: ClassVar[Host] = staticmethod(advance_broken)
    #: what its messages and ours call the container
    kind: ClassVar[tuple[str, str]]

    def __init__(self, space: Space, shown: Any) -> None:
        super().__init__(self.type_over(shown))
        self.begin(space, shown, 0)

    def type_over(self, shown: Any) -> type:
        """The type of an iterator over the container."""
        return self.host_type

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Self:
        self = super().from_host(space, host, source)
        self.shown, self.entries, self.position, self.size, self.version = None, [], 0, 0, 0
        if not _is_at_end(host) and (not _has_item(host) or space.has_changed(iterated(host))):
            self.open(space)
        return self

    def peek(self, space: Space) -> Value | None:
        if self.position or self.source is None or not _has_item(self.host) or space.has_changed(iterated(self.host)):
            return None
        if self._seen_whole() in space.trace.done_first:
            return None
        self.position = 1
        return self.give_first(space, _has_item, _next_item)

    def ends(self, space: Space) -> bool:
        if self.position or self.source is None or not _is_at_end(self.host) or space.has_changed(_left(self.host)):
            return False
        return self.note_end(space, _is_at_end)

    def look_into(self, space: Space) -> None:
        source, taken = self.source, self.position
        assert source is not None
        steps = position(self.host)
        if steps == -2:
            raise Unsupported(errors.OpaqueIterator(f"a {self.cls.__name__} whose {self.kind[1]} has changed"))
        space.trace.guard(Equals(CallSource(position, source, "position"), steps))
        shown: Any = None
        if steps >= 0:
            shown = space.wrap(iterated(self.host), CallSource(iterated, source, "iterated")).force()
            if taken and shown.changed:  # what there was before is known only to a trace that has looked at once
                raise DoFirst(self._seen_whole())
        self.begin(space, shown, max(steps, 0) + taken)

    def _seen_whole(self) -> str:
        """What a trace that begins again knows."""
        assert self.source is not None
        return f"what {self.source.expr()} goes over is looked at before it changes"

    def begin(self, space: Space, shown: Any, steps: int) -> None:
        """Go along the container, beginning some steps on."""
        self.shown, self.position = shown, steps
        self.entries, self.size, self.version = [], 0, 0
        if shown is None:
            return
        if self.source is not None and self.is_outdated(space):
            self.size, self.version = raw_length(shown.host), -1
            return
        self.entries = self.listed(space)
        self.size, self.version = len(self.entries), shown.version

    def is_outdated(self, space: Space) -> bool:
        """Whether the trace has changed the container before it has met this existing iterator."""
        return bool(self.shown.changed)

    def listed(self, space: Space) -> list[Any]:
        """What the container has, in the order in which it is gone along."""
        raise NotImplementedError

    def project(self, space: Space, entry: Any) -> Value:
        """What the iterator gives for an entry."""
        raise NotImplementedError

    def produce(self, space: Space) -> Value | None:
        shown = self.shown
        if shown is None:
            return None
        if shown.version != self.version:
            self.notice_change(space)
        if self.source is not None:
            space.mark_mutated(self)
            self.steps += 1
        if self.position >= len(self.entries):
            self.shown = None
            return None
        self.arrive(space)
        self.position += 1
        return self.project(space, self.entries[self.position - 1])

    def next_value(self, space: Space) -> Value | None:
        return self.produce(space) if self.opened else self.step_on(space)  # no code of the program's runs

    def arrive(self, space: Space) -> None:
        """It is about to give another item."""

    def notice_change(self, space: Space) -> None:
        """The container has changed since: raise what is raised then, or go on where that is known."""
        if self.shown.table.size(space) != self.size:
            self.size = -1
            raise space.error(RuntimeError, f"{self.kind[0]} changed size during iteration")
        self.notice_exchange(space)

    def notice_exchange(self, space: Space) -> None:
        """It has as many items as before, but others."""
        raise Unsupported(errors.UnsupportedMutation("exchange of elements during iteration", self.shown.describe()))

    def unpack(self, space: Space) -> list[Value]:
        """What it still gives."""
        items = []
        self.open(space)
        while (item := self.produce(space)) is not None:
            items.append(item)
        return items

    def left(self, space: Space) -> int:
        return 0 if self.shown is None or self.shown.table.size(space) != self.size else self.size - self.position

    def reduced(self, space: Space) -> Value:
        shown = self.shown
        if shown is not None and shown.version != self.version:
            self.notice_change(space)
        if len(self.entries) > self.size:
            raise Unsupported(errors.UnsupportedMethod(self.cls.__name__, "__reduce__"))
        left = [] if shown is None else self.entries[self.position :]
        return reduction(space, iter, [space.new_list([self.project(space, entry) for entry in left])])
