"""The fields of named tuples: descriptors that read an item by its position."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

from stator.objects.protocol import models
from stator.objects.sequence import Sequence
from stator.objects.value import Known, Value

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.objects.space import Space

__all__ = ["TupleGetter"]

_TUPLEGETTER = type(namedtuple("_Example", "field").field)  # type: ignore[attr-defined]


@models(_TUPLEGETTER)
class TupleGetter(Known):
    """`collections._tuplegetter`: a field of a named tuple."""

    __slots__ = ()

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> TupleGetter:
        self = cls(host, source)
        space.guard_identity(self)
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Any) -> TupleGetter:
        return cls(host)

    def descr_get(self, space: Space, instance: Value | None, owner: type, tail: bool) -> Value:
        if instance is None:
            return self
        instance = instance.force()
        index: int = self.host.__reduce__()[1][0]
        if not isinstance(instance, Sequence) or instance.kind is not tuple:
            name = instance.type_name
            words = f"descriptor for index '{index}' for tuple subclasses doesn't apply to '{name}' object"
            raise space.error(TypeError, words)
        found = instance.item(index)
        if found is None:
            raise space.error(IndexError, "tuple index out of range")
        return found

    def __get__(self, space: Space, instance: Value, owner: Value | None = None, /) -> Value:
        instance = instance.force()
        if instance.cls is type(None) and owner is not None:
            return self
        return self.descr_get(space, instance, instance.cls, False)

    def __set__(self, space: Space, instance: Value, item: Value, /) -> Value:
        raise space.error(AttributeError, "can't set attribute")

    def __delete__(self, space: Space, instance: Value, /) -> Value:
        raise space.error(AttributeError, "can't delete attribute")
