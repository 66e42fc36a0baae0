"""Which existing objects the trace took for different ones: assumed once for each object, under a guard.

Two paths may lead to one object in this call and to two in the next, or the other way round. That two paths led to one
object is guarded where it is found out. That they led to two matters only where objects are compared by identity, and
where one of them is changed: the change must not be seen through the other path.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from stator.guards.guard import Distinct
from stator.guards.source import Source
from stator.space.host_types import Host
from stator.space.value import Known, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Trace
    from stator.space.space import Space


class DistinctObjects:
    """The existing objects assumed to differ from one another, by class: objects of two classes differ anyway."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._groups: dict[type, dict[Source, None]] = {}

    def add(self, value: Value) -> None:
        """Assume that an existing object is none of those of its class that were added before."""
        group = self._groups.setdefault(value.cls, {})
        source = value.source
        assert source is not None
        if source not in group:
            if group:
                self._trace.guard(Distinct(source, tuple(group)))
            group[source] = None

    def assume_distinct(self, left: Value, right: Value) -> None:
        """Assume that two existing objects are two: of others, which a group would bring in, nothing is said."""
        group = self._groups.get(left.cls, {})
        if left.source not in group or right.source not in group:
            assert left.source is not None and right.source is not None
            self._trace.guard(Distinct(left.source, (right.source,)))

    def assume_distinct_from_all(self, value: Value, others: list[Value]) -> None:
        """Assume that an existing object is none of the others, which may be one object among themselves."""
        group = self._groups.get(value.cls, {})
        sources = dict.fromkeys(
            other.source for other in others if value.source not in group or other.source not in group
        )
        if sources:
            assert value.source is not None
            self._trace.guard(Distinct(value.source, tuple(s for s in sources if s is not None)))


class KnownBytes:
    """The existing objects of which the trace knows the bytes, and a tensor may lie in their memory unseen.

    `t = torch.frombuffer(array)` leaves no view that the array knows of.
    """

    def __init__(self, trace: Trace) -> None:
        self.values: list[Value] = []


def _rivals(value: Value, others: Iterable[Value]) -> list[Value]:
    """Those of the others of which the guards so far leave it open whether they are the same object."""
    if value.source is None:
        return []
    known = isinstance(value, Known)  # guarded by its value or identity, as other such are
    fixed = value.source.is_constant
    return [
        other
        for other in others
        if other is not value
        and not other.lazy
        and other.cls is value.cls
        and other.source is not None
        and not (known and isinstance(other, Known))
        and not (fixed and other.source.is_constant)
    ]


def separate(space: Space, left: Value, right: Value) -> None:
    """The trace depended on two objects being two."""
    if _rivals(left, (right,)):
        space.trace.extension(DistinctObjects).assume_distinct(left, right)


def used_as_key(space: Space, value: Value) -> None:
    """An object is looked up by its identity: found or not, it is none of the other keys."""
    if value.source is not None and not isinstance(value, Known) and not value.symbolic:
        space.trace.extension(DistinctObjects).add(value)


def separate_changed(space: Space, changed: Iterable[Value]) -> None:
    """Assume that what was changed is nothing else that the trace has looked at."""
    distinct = space.trace.extension(DistinctObjects)
    done: set[int] = set()
    for value in changed:
        done.add(id(value))
        looked_at = [v for v in space._by_id.values() if id(v) not in done]
        if value.dict_owner is not None:
            # Two objects do not share a __dict__, so it is the objects that must differ.
            looked_at = [v for v in looked_at if v.dict_owner is None]
            _assume_distinct(distinct, value.dict_owner, space._by_id.values())
        _assume_distinct(distinct, value, looked_at)


def _assume_distinct(distinct: DistinctObjects, value: Value, others: Iterable[Value]) -> None:
    rivals = _rivals(value, others)
    if rivals:
        distinct.assume_distinct_from_all(value, rivals)


class ShownAddresses:
    """Computed NaNs of which the program has asked the hash, which is their address: they stay the very objects."""

    def __init__(self, trace: Trace) -> None:
        self.hosts: dict[int, Host] = {}


class InternedTexts:
    """The strings that the trace has interned: equal ones are not the same, so these very objects are handed on."""

    def __init__(self, trace: Trace) -> None:
        self.texts: dict[int, str] = {}
