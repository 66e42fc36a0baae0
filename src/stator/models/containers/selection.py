"""What is found in an existing container under a key that is not the same for good (`Value.select`).

The item is an object at a source of its own, guarded by what it is like: entries are for all keys with such items.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stator.guards.base import Change, Where, show
from stator.guards.guard import Distinct, Equals
from stator.guards.naming import PLAIN, Names, quoted
from stator.guards.source import CallInputs, CallSource, LoadError
from stator.space.deferred import ReadByText
from stator.space.value import NULL, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stator.guards.source import Source
    from stator.space.host_types import Host, HostCallable
    from stator.space.space import Space

__all__ = ["key_text", "select"]


_HELPS = "put what counts or collects in the dict in a function with stator.disable, or use a tensor"


class _NoItem(Equals):
    """Nothing is found under the key: what tells whether something is gives False."""

    __slots__ = ()
    helps = _HELPS

    def __init__(self, source: Source, expected: bool = False, where: Where = None) -> None:
        super().__init__(source, expected, where)

    def explain(self, call: CallInputs, names: Names = PLAIN) -> Change:
        return _key_change(self.source, call, names, "no", "one") or super().explain(call, names)

    def shown(self, path: str) -> str:
        return f"{path} is not there"


class _AnItem(Distinct):
    """A guard that only loads: something must be found under the key."""

    __slots__ = ()
    helps = _HELPS

    def __init__(self, source: Source, others: tuple[Source, ...] = (), where: Where = None) -> None:
        super().__init__(source, others, where)

    def explain(self, call: CallInputs, names: Names = PLAIN) -> Change:
        return _key_change(self.sources[0], call, names, "a", "none") or super().explain(call, names)


def _key_change(source: Source, call: CallInputs, names: Names, before: str, now: str) -> Change | None:
    """That a dict had no such key and has one, or the other way round."""
    assert isinstance(source, CallSource)
    try:
        container, *keys = (call.get(read) for read in (source.base, *source.others))
    except LoadError:
        return None
    table = names.of(source.base)
    if not isinstance(container, dict) or not names.of(source).startswith(table):
        return None  # the program sees something else: `layers[i]` of a module
    key = source.text.removeprefix("{}[").removesuffix("]")
    for number, other in enumerate(source.others, 1):
        key = key.replace(f"{{{number}}}", names.of(other))
    values = ", ".join(f"{names.quoted(other)} is {show(value)}" for other, value in zip(source.others, keys))
    return Change(f"{quoted(table)} had {before} key {quoted(key)}, has {now} now ({values})")


def select(
    space: Space, container: Value, key: Host, read: HostCallable, place: Callable[[HostCallable], Source]
) -> Value | None:
    """What `read` finds by what the key is now: NULL where it raises a KeyError, None where it fails otherwise.

    Args:
        place: gives the source of what a function of the container and the key returns.
    """
    try:
        is_there = _finds(read)(container.host, key)
        source = place(read if is_there else _finds(read))
    except (LookupError, TypeError):
        return None
    if not is_there:
        space.trace.guard(_NoItem(source))
        return NULL
    space.trace.guard(_AnItem(source))
    return space.wrap(read(container.host, key), source)


def key_text(read: HostCallable, number: str) -> str:
    """The key as a program writes it, given how it writes the number that `read` is given."""
    return read.written(number) if isinstance(read, ReadByText) else number


@functools.cache
def _finds(read: HostCallable) -> HostCallable:
    """What tells whether a key is there; one function for each, as sources are interned by it."""

    def finds(container: Host, key: Host) -> bool:
        try:
            read(container, key)
        except KeyError:
            return False
        return True

    return finds
