"""The fields of named tuples: descriptors that read an item by its position."""

from __future__ import annotations

from collections import namedtuple

from stator.guards.source import Source
from stator.models.containers.sequence import Sequence
from stator.models.iterators.iterator import reduction
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.protocol import models
from stator.space.space import Space
from stator.space.value import Constant, NotKnown, ObjectValue, Value

__all__ = ["TupleGetter"]

_TUPLEGETTER = type(namedtuple("_Example", "field").field)  # type: ignore[attr-defined]


@models(_TUPLEGETTER)
class TupleGetter(ObjectValue):
    """`collections._tuplegetter`: a field of a named tuple; `doc` is what the traced program made of its text."""

    __slots__ = ("doc", "index")

    def __init__(self, index: int, doc: Value | None) -> None:
        super().__init__(_TUPLEGETTER)
        self.index = index
        self.doc = doc

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> TupleGetter:
        self = cls(_state(host)[0], None)
        self.host, self.source = host, source
        space.guard_identity(self)
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> TupleGetter:
        index, doc = _state(host)
        return cls(index, space.fresh(doc))

    @staticmethod
    def tp_new(space: Space, cls: Value, index: Value, doc: Value, /) -> Value:
        return TupleGetter(space.int_(index), doc)

    def as_host(self, space: Space) -> Host:
        if self.source is None or self.doc is not None:
            raise NotKnown(self)
        return self.host

    def get_field(self, space: Space, name: str) -> Value | None:
        return self.doc if name == "__doc__" else None

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        if name != "__doc__" or value is None:
            return False
        space.mark_mutated(self)
        self.doc = value
        return True

    def tp_reduce(self, space: Space) -> Value:
        doc = space.getattr(self, "__doc__")
        return reduction(space, self.cls, [Constant(self.index), doc])

    def tp_repr(self, space: Space) -> Value:
        doc = space.str_(space.repr(space.getattr(self, "__doc__")))
        return Constant(f"{self.cls.__name__}({self.index}, {doc})")

    def held(self) -> tuple[Value, ...]:
        return () if self.doc is None else (self.doc,)

    def rebuilt(self, writer: Writer) -> str:
        assert self.doc is not None
        return writer.assign("field", f"{writer.const(self.cls)}({self.index}, {writer.expr(self.doc)})")

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        return [] if self.doc is None else [f"{writer.source(self.source)}.__doc__ = {writer.expr(self.doc)}"]

    # -- the descriptor ---------------------------------------------------------------------------------------------

    def descr_get(self, space: Space, instance: Value | None, owner: type, in_tail_position: bool) -> Value:
        if instance is None:
            return self
        instance = instance.force()
        index = self.index
        if not isinstance(instance, Sequence) or instance.kind is not tuple:
            name = instance.type_name(space)
            words = f"descriptor for index '{index}' for tuple subclasses doesn't apply to '{name}' object"
            raise space.error(TypeError, words)
        found = instance.item(index)
        if found is None:
            raise space.error(IndexError, "tuple index out of range")
        return found

    def tp_get(self, space: Space, instance: Value, owner: Value, /) -> Value:
        return self if instance.is_none() else self.descr_get(space, instance, instance.cls, False)

    def tp_set(self, space: Space, instance: Value, item: Value, /) -> Value:
        raise space.error(AttributeError, "can't set attribute")

    def tp_delete(self, space: Space, instance: Value, /) -> Value:
        raise space.error(AttributeError, "can't delete attribute")


def _state(host: Host) -> tuple[int, Host]:
    """The position of the field, and its text."""
    index, doc = host.__reduce__()[1]
    return index, doc
