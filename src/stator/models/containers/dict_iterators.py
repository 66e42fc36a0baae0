"""Iterators over dicts."""

from __future__ import annotations

import gc
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from stator import errors
from stator.guards.guard import Equals
from stator.guards.source import CallSource, Source
from stator.models.containers.dict_table import Entry, key_error
from stator.models.iterators.iterator import advanced, broken, over_changed, reduction
from stator.space.identity.keys import TracedKey
from stator.space.protocol import MODELS, models
from stator.space.value import ObjectValue, Unsupported, Value

if TYPE_CHECKING:
    from stator.models.containers.dict_ import DictValue
    from stator.space.interfaces import Writer
    from stator.space.space import Space

_D: dict[Any, Any] = {}
_KEY, _VALUE, _ITEM = type(iter(_D)), type(iter(_D.values())), type(iter(_D.items()))
_R_KEY, _R_VALUE, _R_ITEM = type(reversed(_D)), type(reversed(_D.values())), type(reversed(_D.items()))
_ORDERED: Any = type(iter(OrderedDict[Any, Any]()))
_CHANGED = "dictionary changed size during iteration"
_ORDERED_CHANGED = "OrderedDict mutated during iteration"


# -- what generated code and guards call ------------------------------------------------------------------------------


def advance(iterator: Iterator[Any], steps: int) -> None:
    """Take that many steps; an iterator whose dict has changed since is as broken as it would be."""
    try:
        for _ in range(steps):
            next(iterator, None)
    except RuntimeError:
        pass


def iterated(iterator: Any) -> dict[Any, Any]:
    """The dict an iterator runs over."""
    for referent in gc.get_referents(iterator):
        if isinstance(referent, dict):
            return referent
    raise LookupError("the iterator is exhausted")


def position(iterator: Any) -> int:
    """How many steps an iterator has taken over its dict; -1 where it is exhausted, -2 where the dict has changed."""
    try:
        mapping = iterated(iterator)
        return dict.__len__(mapping) - len(iterator.__reduce__()[1][0])
    except LookupError:
        return -1
    except RuntimeError:
        return -2


# -- the models -------------------------------------------------------------------------------------------------------


@models(_KEY, _VALUE, _ITEM, _R_KEY, _R_VALUE, _R_ITEM, _ORDERED)
class DictIterator(ObjectValue):
    """An iterator over the keys, values or items of a dict."""

    __slots__ = ("_entries", "_version", "mapping", "position", "size", "steps")

    plain_iters: tuple[Any, ...] = tuple(t.__iter__ for t in (_KEY, _VALUE, _ITEM, _R_KEY, _R_VALUE, _R_ITEM, _ORDERED))
    #: host types: over a dict, over an OrderedDict
    hosts: ClassVar[tuple[type, type]]
    #: as of `iterator.PositionIterator`: a step for real moves nothing else and runs no code of the program
    moves_alone: ClassVar[bool] = True
    #: 0 keys, 1 values, 2 items
    kind: ClassVar[int]
    backwards: ClassVar[bool] = False

    def __init__(self, space: Space, mapping: DictValue | None, start: int = 0) -> None:
        self.source = None
        self.host: Any = None
        self.mapping = mapping
        self.position = start
        #: steps taken in the trace by an iterator that existed before
        self.steps = 0
        self._entries: list[Entry] = []
        self._version = self.size = 0
        self.cls = self.hosts[0]
        if mapping is not None:
            self.cls = self.hosts[_is_ordered(space, mapping)]
            entries = mapping.table.finish(space)
            self._entries = list(reversed(entries.values()) if self.backwards else entries.values())
            self._version = mapping.table.version
            self.size = len(entries)

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> DictIterator:
        own = space.guard_type(host, source)
        steps = position(host)
        if steps == -2:
            raise Unsupported(errors.OpaqueIterator(f"a {own.__name__} whose dict has changed"))
        space.trace.guard(Equals(CallSource(position, source, "position"), steps))
        mapping: Any = None
        if steps >= 0:
            mapping = space.wrap(iterated(host), CallSource(iterated, source, "iterated")).force()
        self = _kind_of(host)(space, mapping, max(steps, 0))
        if mapping is not None and mapping.table.has_other_keys():  # the trace has changed the dict already
            self._version = -1
            self.size = dict.__len__(mapping.host)
        self.cls = own
        self.host = host
        self.source = source
        return self

    def open(self, space: Space) -> None:
        """An existing one is looked into as soon as it is met."""

    def project(self, space: Space, entry: Entry) -> Value:
        """What the iterator yields for an entry."""
        raise NotImplementedError

    def tp_iter(self, space: Space) -> Value:
        return self

    def tp_next(self, space: Space) -> Value:
        value = self.next_value(space)
        if value is None:
            raise space.error(StopIteration)
        return value

    def next_value(self, space: Space) -> Value | None:
        mapping = self.mapping
        if mapping is None:
            return None
        if mapping.table.version != self._version:
            self._changed(space, mapping)
        if self.source is not None:
            space.mark_mutated(self)
            self.steps += 1
        if self.position >= len(self._entries):
            self.mapping = None
            return None
        if self.position >= self.size:
            self.mapping = None
            raise space.error(RuntimeError, "dictionary keys changed during iteration")
        entry = self._entries[self.position]
        if self.cls is _ORDERED:
            for _ in range(1 if self.kind == 0 else 2):  # for the node, and for its item
                look_up(space, mapping, entry)
        self.position += 1
        return self.project(space, entry)

    def _changed(self, space: Space, mapping: DictValue) -> None:
        """The dict got other keys since the iterator was made."""
        size = len(mapping.table.entries)
        if self.cls is _ORDERED:
            mapping.table.finish(space)  # methods of dict leave the iterator as it was
            if self._has_ended():
                return
            self.mapping = None
            raise space.error(RuntimeError, _ORDERED_CHANGED)
        if size != self.size:
            self.size = -1
            raise space.error(RuntimeError, _CHANGED)
        if mapping.solid is not dict or mapping.dict_owner is not None or not mapping.table.lies_as_added:
            raise Unsupported(errors.UnsupportedMutation("exchange of keys during iteration", mapping.describe()))
        self._exchanged(space, mapping)

    def _has_ended(self) -> bool:
        """Whether it has nothing to come whatever becomes of the dict: those of OrderedDicts know their next key."""
        return self.cls is _ORDERED and self.position >= len(self._entries)

    def _exchanged(self, space: Space, mapping: DictValue) -> None:
        """As many keys as before, but others: the iterator goes on along the places where entries were added."""
        passed, present = self._entries[: self.position], list(mapping.table.entries.values())
        if self.backwards:
            rest = [entry for entry in self._entries[self.position :] if entry in present]
        else:
            rest = [entry for entry in present if entry not in passed]
        self._entries, self._version = [*passed, *rest], mapping.table.version

    def unpack(self, space: Space) -> list[Value]:
        items = []
        while (item := self.next_value(space)) is not None:
            items.append(item)
        return items

    def tp_length_hint(self, space: Space) -> Value:
        if self.mapping is None or self.mapping.table.size(space) != self.size:
            return space.fresh(0)
        return space.fresh(self.size - self.position)

    def tp_reduce(self, space: Space) -> Value:
        mapping = self.mapping
        if mapping is not None and mapping.table.version != self._version:
            self._changed(space, mapping)
        if len(self._entries) > self.size:
            raise Unsupported(errors.UnsupportedMethod(self.cls.__name__, "__reduce__"))
        left = self._entries[self.position :] if mapping is not None else []
        return reduction(space, iter, [space.new_list([self.project(space, entry) for entry in left])])

    # -- generated code ---------------------------------------------------------------------------------------------

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        mapping = self.mapping
        if mapping is None or self._has_ended():
            return advanced(writer, self._iter(writer, f"{writer.const(self._plain())}()"), 1)
        if mapping.table.version != self._version:
            return self._broken(writer, mapping)
        present = mapping.table.entries.values()
        if self._entries != list(reversed(present) if self.backwards else present):
            raise Unsupported(errors.NotReconstructible("an iterator over a dict whose keys were exchanged"))
        made = self._iter(writer, writer.expr(mapping))
        if (mapping.source is not None and mapping.table.has_other_keys()) or writer.is_unfinished(mapping):
            return over_changed(writer, made, self.position)
        return advanced(writer, made, self.position)

    def _broken(self, writer: Writer, mapping: DictValue) -> str:
        """The dict got other keys since: what the next step does is raise."""
        if len(mapping.table.entries) == self.size and self.cls is not _ORDERED:
            raise Unsupported(errors.NotReconstructible("an iterator over a dict whose keys were exchanged"))
        made = f"{writer.const(self._plain())}.fromkeys((0,))"
        return broken(writer, made, lambda other: self._iter(writer, other), "[None] = None")

    def _plain(self) -> type:
        """The type of dict whose iterator it is."""
        return OrderedDict if self.cls is _ORDERED else dict

    def _iter(self, writer: Writer, target: str) -> str:
        """The expression of a new iterator over the real dict."""
        view = ("keys", "values", "items")[self.kind]
        call = f"{writer.const(self._plain())}.{view}({target})"
        return f"{writer.const(reversed if self.backwards else iter)}({call})"

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        return [f"{writer.const(advance)}({writer.source(self.source)}, {self.steps})"] if self.steps else []


def look_up(space: Space, mapping: DictValue, entry: Entry) -> None:
    """`_odict_find_node`: an OrderedDict asks its keys for their hashes again; KeyError where it is another now."""
    key = space.key(entry.key)
    if type(key) is TracedKey and mapping.table.locate(space, key) is None:
        raise key_error(space, entry.key)


def _is_ordered(space: Space, mapping: DictValue) -> bool:
    return issubclass(mapping.cls, OrderedDict) and mapping.solid is OrderedDict


@models(_KEY)
class KeyIterator(DictIterator):
    """`iter(d)`."""

    __slots__ = ()
    hosts = (_KEY, _ORDERED)
    kind = 0

    def project(self, space: Space, entry: Entry) -> Value:
        return entry.key


@models(_VALUE)
class ValueIterator(DictIterator):
    """`iter(d.values())`."""

    __slots__ = ()
    hosts = (_VALUE, _ORDERED)
    kind = 1

    def project(self, space: Space, entry: Entry) -> Value:
        assert entry.item is not None
        return entry.item


@models(_ITEM)
class ItemIterator(DictIterator):
    """`iter(d.items())`."""

    __slots__ = ()
    hosts = (_ITEM, _ORDERED)
    kind = 2

    def project(self, space: Space, entry: Entry) -> Value:
        assert entry.item is not None
        return space.new_tuple([entry.key, entry.item])


@models(_R_KEY)
class ReverseKeyIterator(KeyIterator):
    """`reversed(d)`."""

    __slots__ = ()
    hosts = (_R_KEY, _ORDERED)
    backwards = True


@models(_R_VALUE)
class ReverseValueIterator(ValueIterator):
    """`reversed(d.values())`."""

    __slots__ = ()
    hosts = (_R_VALUE, _ORDERED)
    backwards = True


@models(_R_ITEM)
class ReverseItemIterator(ItemIterator):
    """`reversed(d.items())`."""

    __slots__ = ()
    hosts = (_R_ITEM, _ORDERED)
    backwards = True


def _kind_of(host: Any) -> type[DictIterator]:
    """The model of an existing iterator; that of an OrderedDict does not tell what it yields."""
    if type(host) is _ORDERED:
        raise Unsupported(errors.OpaqueIterator("an iterator of an OrderedDict"))
    return MODELS[type(host)]  # type: ignore[return-value]
