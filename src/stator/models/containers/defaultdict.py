"""defaultdict: `Modules/_collectionsmodule.c`."""

from __future__ import annotations

from collections import defaultdict
from typing import Self

from stator.guards.source import CallSource, Source
from stator.models.containers.dict_ import DictValue, unions
from stator.models.containers.dict_merge import merge
from stator.models.containers.dict_table import key_error
from stator.models.iterators.iterator import reduction
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.protocol import NONE, models
from stator.space.recursion import entered
from stator.space.space import Space
from stator.space.value import Constant, Value

_FACTORY: Host = defaultdict.__dict__["default_factory"]


def factory_of(host: Host) -> Host:
    """The default_factory, whatever a subclass makes of attribute access."""
    return _FACTORY.__get__(host)


@models(defaultdict)
class DefaultDictValue(DictValue):
    """A defaultdict or an instance of a subclass; `factory` is its default_factory."""

    __slots__ = ("_factory_changed", "factory")
    FIELDS = {"default_factory": lambda self, space: self.factory}

    solid = defaultdict

    def __init__(self, cls: type = defaultdict) -> None:
        super().__init__(cls)
        self.factory: Value = NONE
        self._factory_changed = False

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Self:
        self = super().from_host(space, host, source)
        self.factory = space.wrap(factory_of(host), CallSource(factory_of, source, "default_factory"))
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> Self:
        self = super().from_fresh(space, host)
        self.factory = space.fresh(factory_of(host))
        return self

    def host_of(self, space: Space, items: list[tuple[Host, Host]]) -> Host:
        return defaultdict(self.factory.as_host(space), items)

    # -- the factory ------------------------------------------------------------------------------------------------

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
        if not factory.is_none() and not space.truth(space.call_builtin(callable, [factory], {})):
            raise space.error(TypeError, "first argument must be callable or None")
        self.set_field(space, "default_factory", factory)
        return self.update(space, other, **kwargs)

    def tp_missing(self, space: Space, key: Value, /) -> Value:
        if self.factory.is_none():
            raise key_error(space, key)
        item = space.call(self.factory, [], {})
        space.setitem(self, key, item)
        return item

    def copy(self, space: Space) -> Value:
        return space.call(space.class_value(self.cls), [self.factory, self], {})

    def tp_copy(self, space: Space) -> Value:
        return self.copy(space)

    tp_or, tp_ror = unions(
        lambda space, left, self: space.call(space.class_value(self.cls), [self.factory, left], {}),  # type: ignore[attr-defined]
        merge,
    )

    def tp_repr(self, space: Space) -> Value:
        contents = DictValue.tp_repr(self, space)
        with entered(space, self.factory) as again:
            shown: Value = Constant("...") if again else space.repr(self.factory)
        pieces = [Constant(f"{space.class_name(self.cls)}("), shown, Constant(", "), contents, Constant(")")]
        return space.join_strings(pieces)

    def tp_reduce(self, space: Space) -> Value:
        args = [] if self.factory.is_none() else [self.factory]
        return reduction(space, self.cls, args, NONE, NONE, space.iter(space.call_method(self, "items")))


__all__ = ["DefaultDictValue"]
