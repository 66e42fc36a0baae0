"""slice, whose members may be any values."""

from __future__ import annotations

from stator.guards.source import Source
from stator.host.version_facts import SLICES_HASH
from stator.models.containers.part_hashes import hash_of_parts
from stator.models.containers.sequence import slice_of
from stator.models.iterators.iterator import reduction
from stator.space.facts import part
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import bool_value
from stator.space.protocol import NONE, NOT_IMPLEMENTED, models
from stator.space.recursion import entered, enumeration, repr_piece
from stator.space.space import Space
from stator.space.value import Constant, ObjectValue, Value

__all__ = ["SliceValue"]

_MEMBERS = ("start", "stop", "step")


@models(slice)
class SliceValue(ObjectValue):
    """A slice: `start`, `stop` and `step`."""

    __slots__ = ("parts",)
    FIELDS = {
        "start": lambda self, space: self.parts["start"],
        "stop": lambda self, space: self.parts["stop"],
        "step": lambda self, space: self.parts["step"],
    }

    def __init__(self, start: Value, stop: Value, step: Value) -> None:
        super().__init__(slice)
        self.parts = {"start": start, "stop": stop, "step": step}

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> SliceValue:
        space.guard_type(host, source)
        self = cls(*(part(space, host, source, name) for name in _MEMBERS))
        self.source, self.host = source, host
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> SliceValue:
        return cls(*(space.fresh(getattr(host, name)) for name in _MEMBERS))

    @staticmethod
    def tp_new(space: Space, cls: Value, first: Value, second: Value | None = None, third: Value = NONE, /) -> Value:
        return SliceValue(NONE, first, third) if second is None else SliceValue(first, second, third)

    @property
    def members(self) -> list[Value]:
        """start, stop and step."""
        return list(self.parts.values())

    def as_host(self, space: Space) -> Host:
        return slice(*(member.as_host(space) for member in self.members))

    def key(self, space: Space) -> Host:
        if SLICES_HASH:
            return slice(*(member.force().key(space) for member in self.members))
        return super().key(space)

    def indices(self, space: Space, length: Value, /) -> Value:
        count = space.int_(length)
        if count < 0:
            raise space.error(ValueError, "length should not be negative")
        return space.new_tuple([Constant(n) for n in slice_of(space, self).indices(count)])

    def tp_richcompare(self, space: Space, symbol: str, other: Value) -> Value:
        if other.cls is not slice:
            return NOT_IMPLEMENTED
        if other is self:
            return bool_value(symbol in ("==", "<=", ">="))
        theirs = space.new_tuple([space.getattr(other, name) for name in _MEMBERS])
        return space.compare(symbol, space.new_tuple(self.members), theirs)

    def tp_hash(self, space: Space) -> Value:
        """Slices have hashes from 3.12 on: before, their `__hash__` is None, and this slot is not asked."""
        return hash_of_parts(space, "slice", lambda hashes: slice(*hashes), self.members)

    def tp_reduce(self, space: Space) -> Value:
        return reduction(space, slice, self.members)

    def tp_repr(self, space: Space) -> Value:
        with entered(space, self):
            return enumeration("slice(", [repr_piece(space, member) for member in self.members], ")")

    def rebuilt(self, writer: Writer) -> str:
        return writer.assign("slice", f"{writer.const(slice)}({', '.join(writer.expr(m) for m in self.members)})")
