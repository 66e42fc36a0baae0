"""Which objects made by the traced program are certainly alive, and which are certainly dead.

When an object dies is not traced. What a variable or the value stack of a running frame leads to cannot have died,
though, and that answers most programs that look: `Value.held` says what an object keeps alive. And the tracer holds
whatever the program holds: an object whose value is gone is gone itself. Values in cycles go when the program calls
the collector, and not before, as its own objects do for certain.
"""

from __future__ import annotations

import gc
import types
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from stator.guards.raw import type_lookup
from stator.space.attributes import MISSING
from stator.space.host_types import Host
from stator.space.protocol import is_immutable, model_for

if TYPE_CHECKING:
    from stator.space.interfaces import Trace
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["WeakTarget", "is_alive", "leads_to_any", "may_have_died", "noticing", "stands_for", "visible"]

#: objects that are looked at for whether one of them leads to another
_MOST = 10_000


def is_alive(space: Space, value: Value) -> bool:
    """Whether a running frame leads to the object, by references that the trace has seen."""
    return any(found is value for found in _led_to(space.trace))


def missing(hosts: list[Host], values: Iterable[Value]) -> list[Host]:
    """The existing objects that none of the values is."""
    there = {id(value.host) for value in values}
    return [host for host in hosts if id(host) not in there]


def reaches(trace: Trace, host: Host) -> bool:
    """Whether a running frame, or what the traced program has changed, leads to the existing object."""
    return any(stands_for(found, host) for found in _led_to(trace, trace.effects.changed()))


def may_have_died(trace: Trace, host: Host) -> bool:
    """Whether what the traced program has let go of has led to the existing object, and no running frame does."""
    let_go = [item for item in _let_go(trace) if not is_immutable(type(item))]
    if not any(_leads_to(item, host) for item in let_go):
        return False
    return not any(stands_for(found, host) for found in _led_to(trace))


def _let_go(trace: Trace) -> Iterator[Host]:
    """What arguments were, and what changed objects have held, before the trace, and may be held no more."""
    frames = list(trace.running())
    for arg in trace.root.args:
        if not any(frame.holds(arg) for frame in frames):
            yield arg
    for value in trace.effects.changed():
        held = referents(value.host)
        gone = None if getattr(value, "slots", None) else value.dropped(held)
        yield from missing(held, value.held()) if gone is None else gone


def _leads_to(item: Host, host: Host) -> bool:
    """Whether an existing object is the other or leads to it, but for what classes, modules and globals hold."""
    met: set[int] = set()
    waiting = [item]
    while waiting:
        found = waiting.pop()
        if found is host or len(met) > _MOST:
            return True
        kind = type(found)  # isinstance would ask the object's own __class__
        if id(found) in met or issubclass(kind, (type, types.ModuleType)) or is_immutable(kind):
            continue
        met.add(id(found))
        if kind is types.FunctionType:
            met.add(id(found.__globals__))
        waiting += referents(found)
    return False


def visible(trace: Trace) -> list[Value]:
    """What running frames, and what the traced program has changed, lead to."""
    return list(_led_to(trace, trace.effects.changed()))


def leads_to_any(trace: Trace, values: Iterable[Value], others: Iterable[Value]) -> bool:
    """Whether a running frame, or one of the others, leads to any of the values."""
    wanted: set[int] = set()
    for value in values:
        wanted |= {id(value), id(getattr(value, "dict_owner", value))}  # of attributes, whose they are
    return bool(wanted) and any(id(found) in wanted for found in _led_to(trace, others))


def _led_to(trace: Trace, others: Iterable[Value] = ()) -> Iterator[Value]:
    waiting: deque[Value] = deque(others)
    frame = trace.frame
    while frame is not None:
        waiting += [v for v in (*frame.locals.values(), *frame.stack, *frame.cells.values()) if v is not None]
        frame = frame.parent
    met: set[int] = set()
    while waiting:
        found = waiting.popleft()
        yield found
        if id(found) not in met:
            met.add(id(found))
            waiting.extend(found.held())


def referents(container: Host) -> list[Host]:
    """What an existing object leads to. A dict does not tell of what it has in common with its object (3.13)."""
    if issubclass(type(container), dict):
        return [*dict.keys(container), *dict.values(container)]
    return gc.get_referents(container)


def noticing(container: Host, watched: tuple[Host, ...]) -> list[Host]:
    """The objects in an existing container whose end runs code: a `__del__`, or callbacks of weak references.

    `watched` are those that the traced program has made such references to.
    """
    return [item for item in referents(container) if _notices(item) or any(item is other for other in watched)]


def _notices(item: Host) -> bool:
    cls = type(item)
    if is_immutable(cls) or model_for(cls).CACHED_WEAKLY:
        return False
    if type_lookup(cls, "__del__") is not MISSING:
        return True
    if not cls.__weakrefoffset__:
        return False
    return any(reference.__callback__ is not None for reference in weakref.getweakrefs(item))


def stands_for(value: Value, host: Host) -> bool:
    """Whether the value is the existing object."""
    return value.host is host


class WeakTarget:
    """What a weak reference leads to: an object that existed before, or one that the traced program has made."""

    __slots__ = ("_existing", "_made")

    def __init__(self, value: Value | None) -> None:
        new = value is not None and value.source is None
        self._made = weakref.ref(value) if value is not None and new else None
        self._existing = None if new else value

    def get(self) -> Value | None:
        """The object, or None if it is certainly dead."""
        return self._existing if self._made is None else self._made()
