"""slice, whose members may be any values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator.host.version_facts import SLICES_HASH
from stator.models.containers.part_hashes import hash_of_parts
from stator.models.containers.sequence import slice_of
from stator.space.facts import part
from stator.space.protocol import FALSE, NONE, NOT_IMPLEMENTED, TRUE, models
from stator.space.recursion import entered, enumeration, repr_piece
from stator.space.value import Constant, ObjectValue, Value

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.space.interfaces import Writer
    from stator.space.space import Space

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
        self.cls = slice
        self.source: Source | None = None
        self.host: Any = None
        self.parts = {"start": start, "stop": stop, "step": step}

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> SliceValue:
        space.guard_type(host, source)
        self = cls(*(part(space, host, source, name) for name in _MEMBERS))
        self.source, self.host = source, host
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Any) -> SliceValue:
        return cls(*(space.fresh(getattr(host, name)) for name in _MEMBERS))

    @staticmethod
    def tp_new(space: Space, cls: Value, first: Value, second: Value | None = None, third: Value = NONE, /) -> Value:
        return SliceValue(NONE, first, third) if second is None else SliceValue(first, second, third)

    @property
    def members(self) -> list[Value]:
        """start, stop and step."""
        return list(self.parts.values())

    def as_host(self, space: Space) -> Any:
        return slice(*(member.as_host(space) for member in self.members))

    def key(self, space: Space) -> Any:
        if SLICES_HASH:
            return slice(*(member.force().key(space) for member in self.members))
        return super().key(space)

    def indices(self, space: Space, length: Value, /) -> Value:
        count = space.int_(length)
        if count < 0:
            raise space.error(ValueError, "length should not be negative")
        return space.new_tuple([Constant(n) for n in slice_of(space, self).indices(count)])

    def _compared(self, space: Space, symbol: str, other: Value) -> Value:
        other = other.force()
        if other.cls is not slice:
            return NOT_IMPLEMENTED
        if other is self:
            return TRUE if symbol in ("==", "<=", ">=") else FALSE
        theirs = space.new_tuple([space.getattr(other, name) for name in _MEMBERS])
        return space.compare(symbol, space.new_tuple(self.members), theirs)

    def tp_eq(self, space: Space, other: Value, /) -> Value:
        return self._compared(space, "==", other)

    def tp_ne(self, space: Space, other: Value, /) -> Value:
        return self._compared(space, "!=", other)

    def tp_lt(self, space: Space, other: Value, /) -> Value:
        return self._compared(space, "<", other)

    def tp_le(self, space: Space, other: Value, /) -> Value:
        return self._compared(space, "<=", other)

    def tp_gt(self, space: Space, other: Value, /) -> Value:
        return self._compared(space, ">", other)

    def tp_ge(self, space: Space, other: Value, /) -> Value:
        return self._compared(space, ">=", other)

    def tp_hash(self, space: Space) -> Value:
        """Slices have hashes from 3.12 on: before, their `__hash__` is None, and this slot is not asked."""
        return hash_of_parts(space, "slice", lambda hashes: slice(*hashes), self.members)

    def tp_reduce(self, space: Space) -> Value:
        return space.new_tuple([space.class_value(slice), space.new_tuple(list(self.members))])

    def tp_repr(self, space: Space) -> Value:
        with entered(space, self):
            return enumeration("slice(", [repr_piece(space, member) for member in self.members], ")")

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        return writer.assign("slice", f"{writer.const(slice)}({', '.join(writer.expr(m) for m in self.members)})")
