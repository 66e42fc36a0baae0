"""types.SimpleNamespace: `Objects/namespaceobject.c`."""

from __future__ import annotations

import types

from stator.models.classes.instance import InstanceValue
from stator.space.deferred import DeferredStr, concatenated
from stator.space.interfaces import Writer
from stator.space.operands import among
from stator.space.protocol import NONE, models
from stator.space.recursion import entered, repr_piece
from stator.space.space import Space
from stator.space.value import Constant, Value


@models(types.SimpleNamespace)
class NamespaceValue(InstanceValue):
    """A namespace: nothing but its attribute dict."""

    __slots__ = ()

    @classmethod
    def from_fresh(cls, space: Space, host: types.SimpleNamespace) -> Value:
        self = cls(type(host))
        for name, item in vars(host).items():
            self.attr_dict(space).set_str(space, name, space.fresh(item))
        return self

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        return NamespaceValue(cls.force().as_host(space))

    def tp_init(self, space: Space, /, *args: Value, **kwargs: Value) -> Value:
        attrs = self.attr_dict(space)
        if args:
            if not hasattr(types.SimpleNamespace, "__replace__"):
                raise space.error(TypeError, "no positional arguments expected")
            if len(args) > 1:
                return space.unmodelled(types.SimpleNamespace.__init__, [self, *args], kwargs)
            given = args[0].force()
            if given.cls is not dict:
                given = space.call(space.existing(dict), [given], {}).force()
            if not all(key.isa(str) for key in space.unpack(given)):
                raise space.error(TypeError, "keywords must be strings")
            space.call_method(attrs.value(space), "update", given)
        for name, item in kwargs.items():
            attrs.set_str(space, name, item)
        return NONE

    def tp_repr(self, space: Space) -> Value:
        name = "namespace" if self.cls is types.SimpleNamespace else space.class_name(self.cls)
        with entered(space, self) as again:
            if again:
                return Constant(f"{name}(...)")
            items = self.attr_dict(space).entries(space)
            parts: list[str | DeferredStr] = []
            for key, item in items:
                if key:
                    parts += (", " if parts else "", f"{key}=", repr_piece(space, item))
            return concatenated(f"{name}(", *parts, ")")

    @among(types.SimpleNamespace)
    def tp_richcompare(self, space: Space, symbol: str, other: NamespaceValue) -> Value:
        return space.compare(symbol, self.attr_dict(space).value(space), other.attr_dict(space).value(space))

    def tp_reduce(self, space: Space) -> Value:
        return space.new_tuple([space.class_value(self.cls), space.new_tuple([]), self.attr_dict(space).value(space)])

    def shell(self, writer: Writer) -> str:
        return f"{writer.const(types.SimpleNamespace)}.__new__({writer.const(self.cls)})"
