"""Iterators over dicts."""

from __future__ import annotations

from collections import OrderedDict
from typing import ClassVar, Self

from stator import errors
from stator.guards.source import Source
from stator.models.containers.dict_base import DictBase
from stator.models.containers.dict_table import Entry, key_error
from stator.models.iterators.container_iterator import TableIterator, broken
from stator.models.iterators.iterator import iterator_type
from stator.space.host_types import Host
from stator.space.identity.keys import TracedKey
from stator.space.interfaces import Writer
from stator.space.space import Space
from stator.space.value import Unsupported, Value

_D: dict[Host, Host] = {}
#: over an OrderedDict, whatever they give
_ORDERED: type = type(iter(OrderedDict[Host, Host]()))


@iterator_type(_ORDERED)
class DictIterator(TableIterator):
    """An iterator over the keys, values or items of a dict."""

    __slots__ = ()

    shown: DictBase | None
    entries: list[Entry]
    kind = ("dictionary", "dict")
    moves_alone: ClassVar[bool] = True
    #: the method of dict whose view it goes along
    view: ClassVar[str]
    backwards: ClassVar[bool] = False

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Self:
        if type(host) is _ORDERED:  # it does not tell what it gives
            raise Unsupported(errors.OpaqueIterator("an iterator of an OrderedDict"))
        return super().from_host(space, host, source)

    def type_over(self, shown: DictBase) -> type:
        return _ORDERED if shown.solid is OrderedDict else self.host_type

    def is_outdated(self, space: Space) -> bool:
        assert self.shown is not None
        self.shown.table.finish(space)
        return self.shown.changed

    def listed(self, space: Space) -> list[Entry]:
        assert self.shown is not None
        entries = self.shown.table.finish(space).values()
        return list(reversed(entries) if self.backwards else entries)

    def project(self, space: Space, entry: Entry) -> Value:
        return entry.part(space, self.view)

    def arrive(self, space: Space) -> None:
        if self.position >= self.size:
            self.shown = None
            raise space.error(RuntimeError, "dictionary keys changed during iteration")
        if self.cls is _ORDERED:
            assert self.shown is not None
            for _ in range(1 if self.view == "keys" else 2):  # for the node, and for its item
                look_up(space, self.shown, self.entries[self.position])

    def notice_change(self, space: Space) -> None:
        if self.cls is not _ORDERED:
            super().notice_change(space)
            return
        assert self.shown is not None
        self.shown.table.finish(space)  # methods of dict leave the iterator as it was
        if not self.has_ended():
            self.shown = None
            raise space.error(RuntimeError, "OrderedDict mutated during iteration")

    def has_ended(self) -> bool:
        # Those of OrderedDicts know their next key.
        return self.shown is None or (self.cls is _ORDERED and self.position >= len(self.entries))

    def notice_exchange(self, space: Space) -> None:
        """As many keys as before, but others: the iterator goes on along the places where entries were added."""
        shown = self.shown
        assert shown is not None
        if shown.solid is not dict or shown.dict_owner is not None or not shown.table.lies_as_added:
            raise Unsupported(errors.UnsupportedMutation("exchange of keys during iteration", shown.describe()))
        passed, present = self.entries[: self.position], list(shown.table.entries.values())
        if self.backwards:
            rest = [entry for entry in self.entries[self.position :] if entry in present]
        else:
            rest = [entry for entry in present if entry not in passed]
        self.entries, self.version = [*passed, *rest], shown.version

    # -- generated code ---------------------------------------------------------------------------------------------

    def rebuilt(self, writer: Writer) -> str:
        shown = self.shown
        if shown is not None and not self.has_ended() and self.cls is not _ORDERED:
            present = shown.table.entries.values()
            same = self.entries == list(reversed(present) if self.backwards else present)
            if len(present) == self.size and not (same and shown.version == self.version):
                raise Unsupported(errors.NotReconstructible("an iterator over a dict whose keys were exchanged"))
        return super().rebuilt(writer)

    def broken(self, writer: Writer) -> str:
        made = f"{writer.const(self._plain())}.fromkeys((0,))"
        return broken(writer, made, lambda other: self.iterated(writer, other), "[None] = None")

    def _plain(self) -> type:
        """The type of dict whose iterator it is."""
        return OrderedDict if self.cls is _ORDERED else dict

    def emptied(self, writer: Writer) -> str:
        return f"{writer.const(self._plain())}()"

    def iterated(self, writer: Writer, target: str) -> str:
        call = f"{writer.const(self._plain())}.{self.view}({target})"
        return f"{writer.const(reversed if self.backwards else iter)}({call})"


def look_up(space: Space, mapping: DictBase, entry: Entry) -> None:
    """`_odict_find_node`: an OrderedDict asks its keys for their hashes again; KeyError where it is another now."""
    key = mapping.hash_key(space, entry.key)
    if type(key) is TracedKey and mapping.table.locate(space, key) is None:
        raise key_error(space, entry.key)


@iterator_type(type(iter(_D)))
class KeyIterator(DictIterator):
    """`iter(d)`."""

    __slots__ = ()
    view = "keys"


@iterator_type(type(iter(_D.values())))
class ValueIterator(DictIterator):
    """`iter(d.values())`."""

    __slots__ = ()
    view = "values"


@iterator_type(type(iter(_D.items())))
class ItemIterator(DictIterator):
    """`iter(d.items())`."""

    __slots__ = ()
    view = "items"


@iterator_type(type(reversed(_D)))
class ReverseKeyIterator(KeyIterator):
    """`reversed(d)`."""

    __slots__ = ()
    backwards = True


@iterator_type(type(reversed(_D.values())))
class ReverseValueIterator(ValueIterator):
    """`reversed(d.values())`."""

    __slots__ = ()
    backwards = True


@iterator_type(type(reversed(_D.items())))
class ReverseItemIterator(ItemIterator):
    """`reversed(d.items())`."""

    __slots__ = ()
    backwards = True
