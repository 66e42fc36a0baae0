"""What views, iterators and other containers ask of a traced dict; `dict_.py` adds the slots and methods."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext
from typing import ClassVar, Self

from stator.guards.raw import ABSENT, dict_get
from stator.guards.source import Source
from stator.models.classes.instance import held_attributes
from stator.models.containers.dict_table import Table, key_error
from stator.models.numbers.advice import FOR_ITEMS, advising
from stator.space.host_types import Host
from stator.space.identity.varying_keys import SymbolKey
from stator.space.protocol import NONE
from stator.space.space import Space
from stator.space.value import NULL, ExtensibleValue, Value

__all__ = ["DictBase"]


def item_under(mapping: dict[Host, Host], key: Host) -> Host:
    """The item of an existing dict, whatever its `__missing__` does."""
    found = dict_get(mapping, key)
    if found is ABSENT:
        raise KeyError(key)
    return found


class DictBase(ExtensibleValue):
    """A dict or an instance of a subclass; `table` is what it contains."""

    __slots__ = ("_busy", "slots", "table")

    #: the builtin type whose methods act on the real object without meeting overrides
    solid: ClassVar[type] = dict

    def __init__(self, cls: type | None = None) -> None:
        super().__init__(cls or self.solid)
        self.table = Table()
        self.slots: dict[Host, Value | None] = {}
        self._busy = False

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Self:
        self = cls(space.guard_type(host, source))
        self.source, self.host = source, host
        self.table = Table(host, source)
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> Self:
        """The result of a real computation."""
        self = cls(type(host))
        space._by_id[id(host)] = self
        space._kept.append(host)
        for key, item in host.items():
            self.store(space, space.fresh(key), space.fresh(item))
        return self

    @staticmethod
    def hash_key(space: Space, key: Value) -> Host:
        """The hash key of what a dict has or is asked for; a whole number or a text that varies need not be known."""
        key = key.force()
        now = key.number_now()
        if now is not None:
            return SymbolKey(space, key, now)
        text = key.text_key(space)
        if text is not None:
            return text
        with advising(FOR_ITEMS) if key.symbolic or key.cls is tuple else nullcontext():
            return space.key_as(key, "dict key")

    # -- reading ----------------------------------------------------------------------------------------------------

    def find(self, space: Space, key: Value) -> Value | None:
        """`dict.get` as a host function: None where the key is missing."""
        table, key = self.table, key.force()
        if table.source is not None and not table.complete and self._may_select(space, key):
            selected = key.select(space, self, item_under)
            if selected is not None:
                return None if selected is NULL else selected
        entry = table.locate(space, self.hash_key(space, key))
        return None if entry is None else entry.item

    def _may_select(self, space: Space, key: Value) -> bool:
        """Whether the key finds what it found before the trace: nothing has been written that it may be equal to."""
        if not self.table.overlay:
            return True
        return (key.symbolic or key.selects) and self.table.stands_apart(self.hash_key(space, key))

    def pairs(self, space: Space) -> list[tuple[Value, Value]]:
        """Keys and items, in order."""
        return [(e.key, e.item) for e in self.table.finish(space).values() if e.item is not None]

    def unpack(self, space: Space) -> list[Value]:
        """The keys, in order."""
        return [e.key for e in self.table.finish(space).values()]

    def stored(self, space: Space) -> list[tuple[object, Value]]:
        """The keys with their hash keys, in order: nothing needs to be hashed again."""
        return [(key, entry.key) for key, entry in self.table.as_of_set(space).items()]

    def str_items(self, space: Space) -> dict[str, Value]:
        """The items by name, as the call `f(**d)` needs them."""
        named: dict[str, Value] = {}
        for key, item in self.pairs(space):
            if not key.isa(str):
                raise space.error(TypeError, "keywords must be strings")
            named[space.str_(key)] = item
        return named

    @property
    def version(self) -> int:
        """Counts insertions and deletions."""
        return self.table.version

    @property
    def changed(self) -> bool:
        """Whether the traced program has added, removed or moved keys of this existing dict."""
        return self.source is not None and self.table.has_other_keys()

    def dropped(self, hosts: list[Host]) -> list[Host]:
        return self.table.dropped(hosts)

    def held(self) -> Iterable[Value]:
        return (*self.table.held(), *held_attributes(self))

    def describe(self) -> str:
        if self.table.complete:
            return f"a {self.cls.__qualname__} of {len(self.table.entries)}"
        return super().describe()

    # -- writing ----------------------------------------------------------------------------------------------------

    def mark_mutated(self, space: Space) -> None:
        """Note that the dict is about to be changed."""
        space.mark_mutated(self)

    def store(self, space: Space, key: Value, item: Value) -> None:
        """`dict.__setitem__`, without noting the mutation."""
        self.table.put(space, self.hash_key(space, key), key, item)

    def tp_setitem(self, space: Space, key: Value, item: Value, /) -> Value:
        stored = self.hash_key(space, key)
        self.mark_mutated(space)
        self.table.put(space, stored, key, item)
        return NONE

    def tp_delitem(self, space: Space, key: Value, /) -> Value:
        stored = self.hash_key(space, key)
        self.mark_mutated(space)
        if self.table.take(space, stored) is None:
            raise key_error(space, key)
        return NONE
