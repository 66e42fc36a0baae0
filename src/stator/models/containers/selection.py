"""What is found in an existing container under a key that is not the same for good (`Value.select`).

The item is an object at a source of its own, guarded by what it is like: entries are for all keys with such items.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from stator.guards.guard import Distinct, Equals
from stator.space.value import NULL, Value

if TYPE_CHECKING:
    from collections.abc import Callable

    from stator.guards.source import Source
    from stator.space.host_types import Host, HostCallable
    from stator.space.space import Space

__all__ = ["select"]


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
        space.trace.guard(Equals(source, False))
        return NULL
    space.trace.guard(Distinct(source, ()))  # a guard that only loads: there must be such an item
    return space.wrap(read(container.host, key), source)


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
