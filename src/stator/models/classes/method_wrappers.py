"""Static methods and class methods."""

from __future__ import annotations

import types
from typing import Any

from stator import errors
from stator.guards.source import Source
from stator.host.version_facts import CLASS_METHODS_CHAIN
from stator.models.functions.method import BoundMethod
from stator.space.attributes import MISSING
from stator.space.facts import part
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import bool_value
from stator.space.protocol import NONE, models
from stator.space.space import Space
from stator.space.value import ExtensibleValue, Unsupported, Value


def is_abstract(space: Space, value: Value) -> bool:
    """`_PyObject_IsAbstract`."""
    found = space.getattr_or_none(value, "__isabstractmethod__")
    return found is not None and space.truth(found)


#: the attributes of the function that a static or class method copies
_COPIED = tuple(vars(staticmethod(lambda: None)))


class _Wrapper(ExtensibleValue):
    """A callable wrapped into a static or class method."""

    __slots__ = ("_function", "slots")
    ALWAYS_EXISTING = True
    FIELDS = {
        "__func__": lambda self, space: self.function,
        "__wrapped__": lambda self, space: self.function,
        "__isabstractmethod__": lambda self, space: bool_value(is_abstract(space, self.function)),
    }

    def __init__(self, cls: type, function: Value | None = None) -> None:
        super().__init__(cls)
        self._function = function
        self.slots: dict[Host, Value | None] = {}

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Any:
        self = cls(space.guard_type(host, source), part(space, host, source, "__func__"))
        self.host, self.source = host, source
        return self

    @property
    def function(self) -> Value:
        """The callable inside."""
        if self._function is None:
            raise Unsupported(errors.UnsupportedAttribute(self.cls.__name__, "__func__"))
        return self._function

    def tp_init(self, space: Space, function: Value, /) -> Value:
        if self.source is not None:
            raise Unsupported(errors.UnsupportedMethod(self.cls.__name__, "__init__"))
        space.mark_mutated(self)
        self._function = function
        attrs = self.attr_dict(space)
        for name in _COPIED:
            value = space.getattr_or_none(function, name)
            if value is not None:
                attrs.set_str(space, name, value)
        return NONE

    def shell(self, writer: Writer) -> str:
        return f"{self.cls.__mro__[-2].__name__}.__new__({writer.const(self.cls)})"

    def rebuilt(self, writer: Writer) -> str:
        if self._function is None:
            return writer.shell_of(self) or writer.assign("method", self.shell(writer))
        function = writer.expr(self.function)
        shell = writer.shell_of(self)
        if shell is not None:
            writer.line(f"{self.cls.__mro__[-2].__name__}.__init__({shell}, {function})")
            return shell
        return writer.assign("method", f"{writer.const(self.cls)}({function})")


@models(staticmethod)
class StaticMethod(_Wrapper):
    """A static method."""

    __slots__ = ()

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        return StaticMethod(_class_of(space, cls))

    def descr_get(self, space: Space, instance: Value | None, owner: type, in_tail_position: bool) -> Value:
        if space.host_lookup(self.cls, "__get__") is not staticmethod.__get__:
            return overridden_get(space, self, instance, owner)
        return self.function

    def tp_get(self, space: Space, instance: Value, owner: Value, /) -> Value:
        return self.function

    def tp_call(self, space: Space, /, *args: Value, **kwargs: Value) -> Value:
        return space.call(self.function, list(args), kwargs)


@models(classmethod)
class ClassMethod(_Wrapper):
    """A class method."""

    __slots__ = ()

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        return ClassMethod(_class_of(space, cls))

    def descr_get(self, space: Space, instance: Value | None, owner: type, in_tail_position: bool) -> Value:
        if space.host_lookup(self.cls, "__get__") is not classmethod.__get__:
            return overridden_get(space, self, instance, owner)
        return self.bound_to(space, space.class_value(owner))

    def bound_to(self, space: Space, owner: Value) -> Value:
        """The function bound to the class."""
        function = self.function.force()
        chained = CLASS_METHODS_CHAIN and space.host_lookup(function.cls, "__get__") is not MISSING
        if chained and function.cls is not types.FunctionType:
            getter = space.lookup(function.cls, "__get__")
            assert getter is not None
            return space.call(getter, [function, owner, owner], {})
        if space.host_lookup(function.cls, "__call__") is MISSING:
            raise Unsupported(errors.UnsupportedMethod("classmethod", "__get__"))
        return BoundMethod(function, owner)

    def tp_get(self, space: Space, instance: Value, owner: Value, /) -> Value:
        if owner.is_none():
            owner = space.class_value(instance.cls)
        return self.bound_to(space, owner)


def _class_of(space: Space, cls: Value) -> type:
    host: type = cls.force().as_host(space)
    return host


def overridden_get(space: Space, descriptor: Value, instance: Value | None, owner: type) -> Value:
    """`__get__` of a subclass that overrides it."""
    getter = space.lookup(descriptor.cls, "__get__")
    assert getter is not None
    return space.call(getter, [descriptor, instance or NONE, space.class_value(owner)], {})
