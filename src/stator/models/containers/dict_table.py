"""The contents of a traced dict: what is known of the existing one, and what the traced program did to it.

A table is *complete* when `entries` holds everything, in order, as a host dict keyed by hash keys: CPython's
own algorithm then runs on it. The table of an existing dict begins partial: single keys are looked up, and guarded, one
by one, and what is written goes into `overlay`; only order and size make it complete.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from stator import errors
from stator._core import dict_hashes, write_dict
from stator.guards.guard import Equals, HasKey, KeysAre, Length, NoKey
from stator.guards.raw import ABSENT, dict_get, dict_keys, dict_values
from stator.guards.source import CallSource, DictItemSource, DictKeySource, Source
from stator.space.host_types import Host
from stator.space.identity.keys import (
    IdentityKey,
    grounded,
    is_lasting,
    is_plain,
    runs_methods,
    stored_key,
    written_hash,
)
from stator.space.identity.reachability import missing
from stator.space.identity.varying_keys import MOST_COMPARED, SymbolKey, equality, settled, told_apart, varies
from stator.space.space import Space
from stator.space.value import Raised, Unsupported, Value

#: the number of entries that the smallest dict has room for, with those deleted meanwhile
_FIRST_ROOM = 5


class Entry:
    """A key and its item; the key stays the first of equal keys, the item is replaced. Item None: deleted."""

    __slots__ = ("item", "key")

    def __init__(self, key: Value, item: Value | None) -> None:
        self.key = key
        self.item = item

    def part(self, space: Space, view: str) -> Value:
        """What the views show of it: `keys`, `values` or `items`."""
        if view == "keys":
            return self.key
        assert self.item is not None
        return self.item if view == "values" else space.new_tuple([self.key, self.item])


class Original(NamedTuple):
    """An entry as it was before the trace."""

    key: Host
    key_value: Value
    item: Value | None


class Plan(NamedTuple):
    """How to change the real dict into the traced one: first clear or delete, then assign in order."""

    clear: bool
    deleted: list[Value]
    assigned: list[tuple[Value, Value]]


class Table:
    """What a DictValue contains. The caller touches the dict around what changes it."""

    __slots__ = (
        "_quiet",
        "_seen",
        "_text",
        "_varying",
        "before",
        "cleared",
        "complete",
        "entries",
        "host",
        "moved",
        "overlay",
        "source",
        "version",
    )

    def __init__(self, host: dict[Host, Host] | None = None, source: Source | None = None) -> None:
        self.host = host
        self.source = source
        self.complete = host is None
        #: the contents, once complete
        self.entries: dict[Host, Entry] = {}
        #: partial: what was assigned or deleted, by key, in the order in which new keys would appear
        self.overlay: dict[Host, Entry] = {}
        #: partial: keys of the overlay that vary
        self._varying: list[Host] = []
        #: partial: keys of the overlay that were deleted and assigned again, and so are last in order
        self.moved: set[Host] = set()
        #: the entries before the trace, once an existing dict is complete
        self.before: list[Original] = []
        self.cleared = False
        #: counts insertions and deletions: what invalidates iterators
        self.version = 0
        self._seen: dict[Host, Entry | None] = {}
        self._quiet: bool | None = None
        self._text = True

    # -- where the parts of an existing dict are found ---------------------------------------------------------------

    def item_source(self, key: Host) -> Source:
        assert self.source is not None
        return DictItemSource(self.source, key)

    def guard_presence(self, space: Space, key: Host, present: bool) -> None:
        assert self.source is not None
        space.trace.guard(HasKey(self.source, key) if present else NoKey(self.source, key))

    # -- reading ----------------------------------------------------------------------------------------------------

    def _grounded(self, space: Space, key: Host) -> Host:
        """The key as the keys of an existing dict are compared with it."""
        if varies(key) or self._varying_written(key):
            self.finish(space)
        elif self.host is not None and dict.__len__(self.host):
            key = grounded(space, key)
        return told_apart(space, key, self.entries)

    def locate(self, space: Space, key: Host) -> Entry | None:
        """The entry under a key (from `space.key`), or None."""
        waiting = self._waiting(key)
        if waiting is not None and waiting in self.overlay:
            return self.overlay[waiting]
        key = self._grounded(space, key)
        if self.complete:
            return self.entries.get(key)
        if self.overlay:
            entry = self._overlaid(space, key)
            if entry is not None:
                return entry if entry.item is not None else None
        return self.original(space, key)

    def _waiting(self, key: Host) -> Host | None:
        """Where a number or a text that varies is written to an existing dict without being compared with its keys:
        under the same one in the overlay, or by itself if it is none of those there; None where that is not known.
        """
        if not varies(key) or self.complete or len(self.overlay) > MOST_COMPARED or not self._asks_quietly():
            return None
        for other in self.overlay:
            is_equal = equality(key, other)
            if is_equal is not False:
                return other if is_equal else None
        return key

    def _varying_written(self, key: Host) -> bool:
        """Whether the overlay has a number or a text that varies, and may be the key."""
        return any(equality(key, other) is not False for other in self._varying)

    def stands_apart(self, key: Host) -> bool:
        """Whether the key is a number or a text that varies, and none of what has been written."""
        return varies(key) and self._waiting(key) is key

    def _overlaid(self, space: Space, key: Host) -> Entry | None:
        if not self._direct(key):
            return self.finish(space).get(key)
        return self.overlay.get(key)

    def original(self, space: Space, key: Host) -> Entry | None:
        """The entry of the dict as it was before the trace; its presence or absence is guarded."""
        try:
            return self._seen[key]
        except KeyError:
            pass
        if not self._direct(key):
            return self.finish(space).get(key)
        host_key = key.anchor if type(key) is IdentityKey else key
        assert self.host is not None
        found = dict_get(self.host, host_key)
        self.guard_presence(space, host_key, found is not ABSENT)
        entry = None
        if found is not ABSENT:
            entry = Entry(_stable_key(space, host_key), space.wrap(found, self.item_source(host_key)))
        self._seen[key] = entry
        return entry

    def is_known(self, key: Host) -> bool:
        """Whether the trace depends on what the existing dict has, or has not, under the key."""
        return self.complete or key in self._seen

    def held(self) -> list[Value]:
        """The keys and items there are, as far as they have been looked at."""
        entries = self.entries
        if not self.complete:
            entries = {key: entry for key, entry in self._seen.items() if entry is not None} | self.overlay
        return [part for entry in entries.values() if entry.item is not None for part in (entry.key, entry.item)]

    def dropped(self, hosts: list[Host]) -> list[Host]:
        """Which of the existing objects that the dict held before the trace are neither keys nor items any more."""
        if self.complete:
            return missing(hosts, self.held())
        assert self.host is not None
        gone: list[Host] = []
        for key, entry in self.overlay.items():
            host_key = key.anchor if type(key) is IdentityKey else key.now if varies(key) else key
            kept = [] if entry.item is None else [entry.key, entry.item]
            gone += missing([host_key, dict_get(self.host, host_key)], kept)
        return [host for host in hosts if any(host is other for other in gone)]

    def _direct(self, key: Host) -> bool:
        """Whether the host dict itself may be asked for the key: no code of the program's would run."""
        if type(key) is IdentityKey:
            if not is_lasting(key.anchor):
                return False
        elif not is_plain(key) and not isinstance(key, type):
            return False
        return self._asks_quietly()

    def _asks_quietly(self) -> bool:
        """Whether no key of the existing dict runs code of the program's when another is compared with it."""
        if self._quiet is None:
            assert self.host is not None
            self._quiet = all(map(_is_quiet, set(map(type, dict_keys(self.host)))))
        return self._quiet

    def size(self, space: Space) -> int:
        if not self.complete and not self.overlay:
            assert self.host is not None
            assert self.source is not None
            size = dict.__len__(self.host)
            space.trace.guard(Length(self.source, size))
            return size
        return len(self.finish(space))

    def varying_size(self, space: Space) -> Value | None:
        """The size of an existing dict, as a symbol if it varies and nobody has asked for all entries."""
        if self.complete or self.overlay:
            return None
        assert self.host is not None
        assert self.source is not None
        return space.symbol(dict.__len__(self.host), CallSource(dict.__len__, self.source, "len"))

    def finish(self, space: Space) -> dict[Host, Entry]:
        """The entries, all of them, in order; keys and order of an existing dict are guarded."""
        if self.complete:
            return self.entries
        self.before = self._read_all(space)
        self.entries = filled([(o.key, Entry(o.key_value, o.item)) for o in self.before], self._hashes(space))
        self.complete = True
        for written, entry in self.overlay.items():
            key = told_apart(space, written, self.entries)
            if entry.item is None or written in self.moved:
                self.entries.pop(key, None)
            if entry.item is not None:
                self.entries.setdefault(key, entry).item = entry.item
        self.overlay, self._varying = {}, []
        return self.entries

    def as_of_set(self, space: Space) -> dict[Host, Entry]:
        """The entries, where their keys meet those of a set: no key is a number that varies."""
        entries = self.finish(space)
        varying = any(map(varies, entries))
        return {settled(space, key): entry for key, entry in entries.items()} if varying else entries

    def _hashes(self, space: Space) -> list[int | None]:
        """The hashes of keys that methods of the program's have hashed, as the existing dict has stored them."""
        traced = [runs_methods(original.key) for original in self.before]
        if not any(traced):
            return [None] * len(traced)
        assert self.host is not None
        assert self.source is not None
        stored = stored_hashes(self.host)
        space.trace.guard(Equals(CallSource(stored_hashes, self.source, "hashes"), stored))
        return [number if mine else None for number, mine in zip(stored, traced, strict=True)]

    def _read_all(self, space: Space) -> list[Original]:
        assert self.host is not None
        assert self.source is not None
        keys = list(dict_keys(self.host))
        if len(keys) != dict.__len__(self.host):
            raise Unsupported(errors.OpaqueIterator("an OrderedDict that was changed by methods of dict"))
        stable = all(type(k) is str or is_plain(k) or is_lasting(k) for k in keys) and not self._numbers_vary(
            space, keys
        )
        space.trace.guard(KeysAre(self.source, tuple(keys)) if stable else Length(self.source, len(keys)))
        result: list[Original] = []
        hashes = keys if stable else stored_hashes(self.host)
        for index, (host_key, host_item) in enumerate(zip(keys, dict_values(self.host), strict=True)):
            if stable:
                key_value = _stable_key(space, host_key)
                key = host_key if type(host_key) is str else space.key(key_value)
            else:
                key_value = space.wrap(host_key, DictKeySource(self.source, index))
                now = key_value.force().number_now()
                key = stored_key(space, key_value, hashes[index]) if now is None else SymbolKey(space, key_value, now)
            seen = None if runs_methods(key) else self._seen.get(key)
            if seen is not None:
                item = seen.item
            else:
                nth = f"list({{}}.values())[{index}]"
                source = self.item_source(host_key) if stable else CallSource(nth_item(index), self.source, nth)
                item = space.wrap(host_item, source)
            result.append(Original(key, key_value, item))
        return result

    def _numbers_vary(self, space: Space, keys: list[Host]) -> bool:
        """Whether the keys are numbers of which another trace has met others, as those of hooks are in each layer."""
        if len(keys) > MOST_COMPARED or any(type(key) is not int for key in keys):
            return False
        assert self.source is not None
        symbols = [space.symbol(key, DictKeySource(self.source, index)) for index, key in enumerate(keys)]
        return any(symbol is not None for symbol in symbols)

    # -- writing ----------------------------------------------------------------------------------------------------

    def put(self, space: Space, key: Host, key_value: Value, item: Value) -> None:
        """`d[key] = item`."""
        waiting = self._waiting(key)
        if waiting is not None:
            self._put_overlay(waiting, key_value, item)
            return
        key = self._grounded(space, key)
        if self.source is not None and type(key) is str:
            space.trace.effects.assigned[self.item_source(key)] = item
        if not self.complete and self._direct(key):
            self._put_overlay(key, key_value, item)
            return
        new = Entry(key_value, item)
        entries = self.entries if self.complete else self.finish(space)
        old = entries.setdefault(key, new)
        if old is new:
            self._added(key_value)
        else:
            old.item = item

    def setdefault(self, space: Space, key: Host, key_value: Value, item: Value) -> tuple[Entry, bool]:
        """The entry under the key, and whether it had to be added: the key is looked for once."""
        new = Entry(key_value, item)
        key = self._grounded(space, key)
        if self.complete or not self._direct(key):
            entry = self.finish(space).setdefault(key, new)
            if entry is new:
                self._added(key_value)
            return entry, entry is new
        found = self.locate(space, key)
        if found is not None:
            return found, False
        self._put_overlay(key, key_value, item)
        return new, True

    def _put_overlay(self, key: Host, key_value: Value, item: Value) -> None:
        old = self.overlay.get(key)
        if old is not None and old.item is not None:
            old.item = item
            return
        if old is not None:  # deleted: it comes back at the end
            del self.overlay[key]
            self.moved.add(key)
        if varies(key):
            self._varying.append(key)
        self.overlay[key] = Entry(key_value, item)

    def take(self, space: Space, key: Host) -> Entry | None:
        """Remove and return the entry, or None if there is none."""
        key = self._grounded(space, key)
        if not self.complete and self._direct(key):
            return self._take_overlay(space, key)
        entry = self.finish(space).pop(key, None)
        if entry is not None:
            self.version += 1
        return entry

    def _take_overlay(self, space: Space, key: Host) -> Entry | None:
        old = self.overlay.get(key)
        if old is not None and old.item is None:
            return None
        original = self.original(space, key)
        if old is not None:
            del self.overlay[key]
            self.moved.discard(key)
        if original is not None:
            self.overlay[key] = Entry(original.key, None)
        return old or original

    def clear(self) -> None:
        self.cleared = self.host is not None
        self.complete = True
        self.entries = {}
        self.overlay, self._varying = {}, []
        self.before = []
        self.laid_out_anew()

    def _added(self, key: Value) -> None:
        if self._text and key.force().cls is not str:
            self._text = False
            if self.version:  # there is another layout for dicts that have other keys than strings
                self.laid_out_anew()
        self.version += 1

    def laid_out_anew(self) -> None:
        """Entries may lie elsewhere than where they were added."""
        self.version += _FIRST_ROOM + 1

    @property
    def lies_as_added(self) -> bool:
        """Whether each entry lies where it was added: the dict is new, and was never laid out anew."""
        return self.host is None and self.version <= _FIRST_ROOM

    def fill_from(self, other: Table) -> None:
        """Fill an empty, complete table with what another, complete one holds: nothing is hashed or compared."""
        self.entries = other.copied()
        for entry in self.entries.values():
            self._added(entry.key)

    def remove_stored(self, key: Host) -> Entry:
        """Remove an entry of a complete table by its own stored key: nothing is compared."""
        self.version += 1
        if next(reversed(self.entries)) is key:
            return self.entries.popitem()[1]
        index, entry = next((i, e) for i, (k, e) in enumerate(self.entries.items()) if k is key)
        self._arrange([*range(index), *range(index + 1, len(self.entries))])
        return entry

    def move(self, key: Host, to_end: bool) -> None:
        """Move an entry of a complete table to one of the ends."""
        self.version += 1
        index = next(i for i, k in enumerate(self.entries) if k is key)
        others = [*range(index), *range(index + 1, len(self.entries))]
        self._arrange([*others, index] if to_end else [index, *others])

    def _arrange(self, order: list[int]) -> None:
        entries, hashes = list(self.entries.items()), dict_hashes(self.entries)
        self.entries = filled([entries[i] for i in order], [hashes[i] for i in order])

    def copied(self) -> dict[Host, Entry]:
        """Entries for a dict that is to have the same keys and items, with the same hashes."""
        return filled([(k, Entry(e.key, e.item)) for k, e in self.entries.items()], dict_hashes(self.entries))

    # -- writing back -----------------------------------------------------------------------------------------------

    def plan(self) -> Plan:
        """The least changes that turn the existing dict into the traced one."""
        if not self.complete:
            deleted = [e.key for k, e in self.overlay.items() if e.item is None or k in self.moved]
            return Plan(False, deleted, [(e.key, e.item) for e in self.overlay.values() if e.item is not None])
        kept = self._kept()
        clear = self.cleared or bool(self.before and not kept)
        deleted = [] if clear else [o.key_value for o in self.before if id(o.key) not in kept]
        assigned = []
        for key, entry in self.entries.items():
            if entry.item is not None and (id(key) not in kept or kept[id(key)] is not entry.item):
                assigned.append((entry.key, entry.item))
        return Plan(clear, deleted, assigned)

    def runs_methods(self) -> bool:
        """Whether hashing or comparing the keys may run methods of the program's."""
        keys = [*self.entries, *(original.key for original in self.before)] if self.complete else []
        return any(map(runs_methods, keys))

    def written_hashes(self) -> dict[int, int | None]:
        """The hashes of the keys for generated code, by id of the key's value; None where it may ask for them."""
        hashes = zip(self.entries.items(), dict_hashes(self.entries), strict=True)
        return {id(entry.key): written_hash(key, number) for (key, entry), number in hashes}

    def has_other_keys(self) -> bool:
        """Whether keys of an existing dict were added, removed or moved, so that writing back changes its structure."""
        if not self.complete:
            return bool(self.overlay)
        return self.cleared or len(self._kept()) != len(self.entries) or len(self.entries) != len(self.before)

    def _kept(self) -> dict[int, Value | None]:
        """The keys (by id) that can stay where they are, with the items they had: a common start, in the old order."""
        place = {id(o.key): (index, o.item) for index, o in enumerate(self.before)}
        kept: dict[int, Value | None] = {}
        last = -1
        for key in self.entries:
            index, item = place.get(id(key), (-1, None))
            if index <= last:
                break
            last = index
            kept[id(key)] = item
        return kept


def stored_hashes(host: dict[Host, Host]) -> tuple[int, ...]:
    """The hashes of the keys, as the dict has stored them."""
    return dict_hashes(host)


def filled(entries: list[tuple[Host, Entry]], hashes: Sequence[int | None]) -> dict[Host, Entry]:
    """A dict of the hash keys and entries: those that hash alike are not compared."""
    made: dict[Host, Entry] = write_dict({}, (), [k for k, _ in entries], [e for _, e in entries], hashes)
    return made


def _stable_key(space: Space, host: Host) -> Value:
    return space.existing(host) if is_lasting(host) else space.fresh(host)


def _is_quiet(cls: type) -> bool:
    """Whether hashing and comparing objects of the class runs no Python code."""
    return not isinstance(getattr(cls, "__hash__", None), types.FunctionType) and not isinstance(
        getattr(cls, "__eq__", None), types.FunctionType
    )


def key_error(space: Space, key: Value) -> Raised:
    """`KeyError(key)`, the key being its argument as it is."""
    return space.error(KeyError, key.force())


class _NthItem:
    """The item under the n-th key of a dict."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __call__(self, mapping: dict[Host, Host]) -> Host:
        return next(islice(dict_values(mapping), self.index, None))

    def __reduce__(self) -> tuple[Host, ...]:
        return nth_item, (self.index,)


@functools.cache
def nth_item(index: int) -> _NthItem:
    """The loader of the n-th item, one object for each n, as sources are interned by it."""
    return _NthItem(index)
