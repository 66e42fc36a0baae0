"""mappingproxy: `Objects/descrobject.c`, a view of a mapping that cannot change it."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable
from typing import Self

from stator.guards.source import CallSource, Source
from stator.space.deferred import concatenated
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.protocol import NONE, models
from stator.space.recursion import repr_piece
from stator.space.space import Space
from stator.space.value import NotKnown, ObjectValue, Value

__all__ = ["MappingProxyValue", "viewed"]


def viewed(view: Host) -> Host:
    """The dict that a view or mappingproxy shows."""
    return gc.get_referents(view)[0]


def _passed_on(name: str) -> Callable[..., Value]:
    """A method that is the mapping's own."""

    def method(self: MappingProxyValue, space: Space) -> Value:
        return space.call_method(self.shown, name)

    return method


@models(types.MappingProxyType)
class MappingProxyValue(ObjectValue):
    """A read-only view of `shown`, any mapping."""

    __slots__ = ("shown",)

    def __init__(self, shown: Value) -> None:
        super().__init__(types.MappingProxyType)
        self.shown = shown

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Self:
        space.guard_type(host, source)
        self = cls(space.wrap(viewed(host), CallSource(viewed, source, "viewed")).force())
        self.source, self.host = source, host
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> Self:
        """The result of a real computation."""
        return cls(space.fresh(viewed(host)))

    def as_host(self, space: Space) -> Host:
        if self.source is not None:
            return self.host
        raise NotKnown(self)

    def rebuilt(self, writer: Writer) -> str:
        return writer.assign("proxy", f"{writer.const(types.MappingProxyType)}({writer.expr(self.shown)})")

    @staticmethod
    def tp_new(space: Space, cls_value: Value, mapping: Value, /) -> Value:
        mapping = mapping.force()
        if space.special(mapping, "__getitem__") is None or mapping.isa((list, tuple)):
            text = f"mappingproxy() argument must be a mapping, not {mapping.type_name(space)}"
            raise space.error(TypeError, text)
        return MappingProxyValue(mapping)

    def tp_getitem(self, space: Space, key: Value, /) -> Value:
        return space.getitem(self.shown, key)

    def tp_len(self, space: Space) -> Value:
        return space.len(self.shown)

    def tp_contains(self, space: Space, key: Value, /) -> Value:
        return space.contains(self.shown, key)

    def tp_iter(self, space: Space) -> Value:
        return space.iter(self.shown)

    def tp_reversed(self, space: Space) -> Value:
        return space.call(space.existing(reversed), [self.shown], {})

    def get(self, space: Space, key: Value, default: Value = NONE, /) -> Value:
        return space.call_method(self.shown, "get", key, default)

    keys, values, items, copy = map(_passed_on, ("keys", "values", "items", "copy"))

    def tp_repr(self, space: Space) -> Value:
        return concatenated("mappingproxy(", repr_piece(space, self.shown), ")")

    def tp_richcompare(self, space: Space, symbol: str, other: Value) -> Value:
        return space.compare(symbol, self.shown, other)

    def tp_str(self, space: Space) -> Value:
        return space.str(self.shown)

    def tp_hash(self, space: Space) -> Value:
        return space.hash(self.shown)

    def tp_or(self, space: Space, other: Value, /) -> Value:
        return space.binary("|", self.shown, _shown(other))

    def tp_ror(self, space: Space, other: Value, /) -> Value:
        return space.binary("|", _shown(other), self.shown)

    def tp_ior(self, space: Space, other: Value, /) -> Value:
        raise space.error(TypeError, f"'|=' is not supported by {self.type_name(space)}; use '|' instead")


def _shown(value: Value) -> Value:
    value = value.force()
    return value.shown if isinstance(value, MappingProxyValue) else value
