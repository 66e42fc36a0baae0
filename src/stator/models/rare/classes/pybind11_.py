"""What pybind11 makes of C++: its metaclass, methods (`instancemethod`), and enumerations.

    class ProcessGroup, with the metaclass pybind11_type
        broadcast       an `instancemethod` over a C function, since C functions bind to nothing
        size            a property over such

Nothing is known of what the C++ half of an object holds, so its functions break the graph, under their names. The
members of an enumeration are known by identity; they compare, hash and print by their numbers.
"""

from __future__ import annotations

import functools
from typing import Any

from stator import errors
from stator.guards.callable_names import INSTANCE_METHOD, class_name, function_of
from stator.guards.raw import class_dict
from stator.guards.source import Source
from stator.models.classes.instance import InstanceValue
from stator.models.functions.method import BoundMethod, Named
from stator.space.attributes import attribute_name
from stator.space.facts import fixed
from stator.space.host_types import Host
from stator.space.operands import bool_value
from stator.space.protocol import (
    MODELS,
    NOT_IMPLEMENTED,
    Handler,
    builtin,
    handler_of,
    is_immutable,
    models,
    register,
)
from stator.space.space import Space
from stator.space.value import Constant, Known, Unsupported, Value

#: what a member of an enumeration answers by its class and its number alone
_OF_MEMBERS = frozenset(
    {
        *("name", "value", "__hash__", "__int__", "__index__", "__repr__", "__str__", "__invert__", "__eq__", "__ne__"),
        *("__lt__", "__le__", "__gt__", "__ge__", "__and__", "__or__", "__xor__", "__rand__", "__ror__", "__rxor__"),
    }
)


@models(INSTANCE_METHOD)
class InstanceMethod(Named):
    """A callable that is a method where a class has it (`PyInstanceMethod_Type`)."""

    __slots__ = ()

    def function(self, space: Space) -> Value:
        """The callable."""
        return space.existing(fixed(self.host, "__func__"))

    def key(self, space: Space) -> Host:
        return space.traced_key(self)

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        return space.call(self.function(space), args, kwargs, in_tail_position)

    def descr_get(self, space: Space, instance: Value | None, owner: type, in_tail_position: bool) -> Value:
        function = self.function(space)
        return function if instance is None else BoundMethod(function, instance)

    def tp_get(self, space: Space, instance: Value, owner: Value, /) -> Value:
        return self.descr_get(space, None if instance.is_none() else instance, object, False)

    def tp_getattribute(self, space: Space, name: Value) -> Value:
        text = attribute_name(space, name)
        if space.lookup(self.cls, text) is not None:
            return space.generic_getattr(self, text)
        return space.getattr(self.function(space), text)

    def tp_richcompare(self, space: Space, symbol: str, other: Value) -> Value:
        if not isinstance(other, InstanceMethod) or symbol not in ("==", "!="):
            return NOT_IMPLEMENTED
        return bool_value(space.equal(self.function(space), other.function(space)) == (symbol == "=="))


class Member(Known):
    """A member of an enumeration; other objects of pybind11's are modelled as instances whose parts are not known."""

    __slots__ = ()

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        kind = space.guard_type(host, source)
        if not _is_enumeration(kind):
            return InstanceValue.from_host(space, host, source)
        _model_members(kind)
        member = cls(host, source)
        space.guard_identity(member)
        return member

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> Value:
        return space.existing(host) if _is_enumeration(type(host)) else InstanceValue.from_fresh(space, host)


def _is_enumeration(cls: type) -> bool:
    return {"__entries", "__members__", "__int__"} <= class_dict(cls).keys()


@functools.cache
def _model_members(enumeration: type) -> None:
    """What is asked of members is computed for real; the classes that C++ has made stay."""
    for name, found in class_dict(enumeration).items():
        if name in _OF_MEMBERS:
            register(function_of(found), _computing(function_of(found)))


def _computing(function: Host) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        forced = [arg.force() for arg in args]
        known = not kwargs and all(isinstance(arg, Constant | Member) for arg in forced)
        return space.run_known(function, forced) if known and isinstance(forced[0], Member) else None

    return handler


def _model(meta: type) -> None:
    """The metaclass of the classes that are written in C++, and of those that derive from them."""

    @builtin(class_dict(meta)["__getattribute__"])
    def getattribute(space: Space, cls: Value, name: Value, /) -> Value:
        """A method is found as it is, so that it can be given another name; all else is as for other classes."""
        cls = cls.force()
        found = space.lookup(cls.as_host(space), attribute_name(space, name))
        return (
            found if isinstance(found, InstanceMethod) else space.call_builtin(type.__getattribute__, [cls, name], {})
        )

    def call(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """An object is made in C++: of its class there is a model, or it is immutable or a member of an enumeration."""
        cls, *rest = [arg.force() for arg in args]
        host: type = cls.as_host(space)
        handler = handler_of(host)
        made = None if handler is None else handler(space, rest, kwargs)
        if made is not None:
            return made
        given = [*rest, *[arg.force() for arg in kwargs.values()]]
        if (is_immutable(host) or (_is_enumeration(host) and not kwargs)) and all(arg.constant for arg in given):
            return space.run_known(host, rest, kwargs)
        raise Unsupported(errors.UnsupportedCCall(class_name(host)))

    register(class_dict(meta)["__call__"], call)


def _model_static_property(cls: type) -> None:
    """A property of a class: its getter takes the class."""

    @builtin(class_dict(cls)["__get__"])
    def get(space: Space, self: Value, instance: Value, owner: Value, /) -> Value:
        enumeration = space.known(owner.force())
        if space.identity(self) is not class_dict(enumeration).get("__members__") or not _is_enumeration(enumeration):
            return space.call(space.getattr(self, "fget"), [owner], {})
        # A new dict in each call, of what cannot be added to from Python.
        return space.new_dict([(Constant(name), space.existing(member)) for name, member in _members(enumeration)])


def _members(enumeration: Any) -> list[tuple[str, Host]]:
    return list(enumeration.__members__.items())


_MODULE = "pybind11_builtins"
for _meta in type.__subclasses__(type):
    if _meta.__module__ == _MODULE:
        _model(_meta)
for _base in object.__subclasses__():
    if type(_base).__module__ == _MODULE == _base.__module__:
        MODELS[_base] = Member
for _property in property.__subclasses__():
    if _property.__module__ == _MODULE:
        _model_static_property(_property)
