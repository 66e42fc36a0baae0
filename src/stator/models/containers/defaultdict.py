"""defaultdict: `Modules/_collectionsmodule.c`."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from stator.guards.source import CallSource, Source
from stator.models.containers.dict_ import DictValue
from stator.models.containers.dict_merge import merge
from stator.models.containers.dict_table import key_error
from stator.space.protocol import NONE, NOT_IMPLEMENTED, models
from stator.space.recursion import entered
from stator.space.value import Constant, NotKnown, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Writer
    from stator.space.space import Space

_FACTORY: Any = defaultdict.__dict__["default_factory"]


def factory_of(host: Any) -> Any:
    """The default_factory, whatever a subclass makes of attribute access."""
    return _FACTORY.__get__(host)


@models(defaultdict)
class DefaultDictValue(DictValue):
    """A defaultdict or an instance of a subclass; `factory` is its default_factory."""

    __slots__ = ("_factory_changed", "factory")
    FIELDS = frozenset({"default_factory"})

    solid = defaultdict

    def __init__(self, cls: type = defaultdict) -> None:
        super().__init__(cls)
        self.factory: Value = NONE
        self._factory_changed = False

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> DefaultDictValue:
        self = super().from_host(space, host, source)
        assert isinstance(self, DefaultDictValue)
        self.factory = space.wrap(factory_of(host), CallSource(factory_of, source, "default_factory"))
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Any) -> DefaultDictValue:
        self = super().from_fresh(space, host)
        assert isinstance(self, DefaultDictValue)
        self.factory = space.fresh(factory_of(host))
        return self

    def as_host(self, space: Space) -> Any:
        if self.cls is not defaultdict or self._busy:
            raise NotKnown(self)
        self._busy = True
        try:
            items = [(key.as_host(space), item.as_host(space)) for key, item in self.pairs(space)]
        finally:
            self._busy = False
        return defaultdict(self.factory.as_host(space), items)

    # -- the factory ------------------------------------------------------------------------------------------------

    def get_field(self, space: Space, name: str) -> Value | None:
        return self.factory if name == "default_factory" else None

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        if name != "default_factory":
            return False
        space.mark_mutated(self)
        self.factory = value or NONE
        self._factory_changed = True
        return True

    def fill_extra(self, writer: Writer, name: str) -> None:
        writer.line(f"{writer.const(_FACTORY)}.__set__({name}, {writer.expr(self.factory)})")

    def effects(self, writer: Writer) -> list[str]:
        lines = super().effects(writer)
        if self._factory_changed:
            assert self.source is not None
            factory = writer.expr(self.factory)
            lines.append(f"{writer.const(_FACTORY)}.__set__({writer.source(self.source)}, {factory})")
        return lines

    # -- slots and methods ------------------------------------------------------------------------------------------

    def tp_init(  # type: ignore[override]
        self, space: Space, factory: Value = NONE, other: Value | None = None, /, **kwargs: Value
    ) -> Value:
        factory = factory.force()
        if factory.cls is not type(None) and not _callable(space, factory):
            raise space.error(TypeError, "first argument must be callable or None")
        self.set_field(space, "default_factory", factory)
        merge(space, self, other, kwargs)
        return NONE

    def tp_missing(self, space: Space, key: Value, /) -> Value:
        if self.factory.force().cls is type(None):
            raise key_error(space, key)
        item = space.call(self.factory, [], {})
        space.setitem(self, key, item)
        return item

    def copy(self, space: Space) -> Value:
        return space.call(space.class_value(self.cls), [self.factory, self], {})

    def tp_copy(self, space: Space) -> Value:
        return self.copy(space)

    def tp_or(self, space: Space, other: Value, /) -> Value:
        return self._union(space, self, other.force())

    def tp_ror(self, space: Space, other: Value, /) -> Value:
        return self._union(space, other.force(), self)

    def _union(self, space: Space, left: Value, right: Value) -> Value:
        if not isinstance(left, DictValue) or not isinstance(right, DictValue):
            return NOT_IMPLEMENTED
        result = space.call(space.class_value(self.cls), [self.factory, left], {}).force()
        assert isinstance(result, DictValue)
        merge(space, result, right, {})
        return result

    def tp_repr(self, space: Space) -> Value:
        contents = DictValue.tp_repr(self, space)
        with entered(space, self.factory) as again:
            shown: Value = Constant("...") if again else space.repr(self.factory)
        pieces = [Constant(f"{space.class_name(self.cls)}("), shown, Constant(", "), contents, Constant(")")]
        return space.join_strings(pieces)

    def tp_reduce(self, space: Space) -> Value:
        args = [] if self.factory.force().cls is type(None) else [self.factory]
        items = space.iter(space.call_method(self, "items"))
        return space.new_tuple([space.class_value(self.cls), space.new_tuple(args), NONE, NONE, items])


def _callable(space: Space, value: Value) -> bool:
    return bool(space.known(space.call_builtin(callable, [value], {})))


__all__ = ["DefaultDictValue"]
