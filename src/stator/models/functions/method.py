"""Bound methods, and C functions with their descriptors."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from stator import errors
from stator.guards.callable_names import is_unbound
from stator.guards.guard import Equals
from stator.guards.raw import is_subtype, type_lookup
from stator.guards.source import ConstSource, GetAttrSource, Source
from stator.space.attributes import attribute_name
from stator.space.facts import fixed, is_fixed, part
from stator.space.host_types import Host
from stator.space.identity.keys import IdentityKey
from stator.space.interfaces import Writer
from stator.space.operands import bool_value, host_errors
from stator.space.protocol import (
    MODELS,
    NONE,
    NOT_IMPLEMENTED,
    bad_call,
    builtin,
    handler_of,
    models,
)
from stator.space.space import Space
from stator.space.value import Constant, Known, ObjectValue, Unsupported, Value


@models(types.MethodType)
class BoundMethod(ObjectValue):
    """A function (any callable) bound to an instance."""

    __slots__ = ("function", "instance")
    FIELDS = {
        "__doc__": lambda self, space: space.getattr(self.function, "__doc__"),
        "__func__": lambda self, space: self.function,
        "__self__": lambda self, space: self.instance,
    }

    def __init__(self, function: Value, instance: Value) -> None:
        super().__init__(types.MethodType)
        self.function = function
        self.instance = instance

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> BoundMethod:
        space.guard_type(host, source)
        self = cls(*(part(space, host, source, name) for name in ("__func__", "__self__")))
        self.host, self.source = host, source
        return self

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> BoundMethod:
        return cls(space.fresh(host.__func__), space.fresh(host.__self__))

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, instance: Value) -> Value:
        if space.special(function.force(), "__call__") is None:
            raise space.error(TypeError, "first argument must be callable")
        if instance.is_none():
            raise space.error(TypeError, "instance must not be None")
        return BoundMethod(function, instance)

    def held(self) -> Iterable[Value]:
        return (self.function, self.instance)

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        return space.call(self.function, [self.instance, *args], kwargs, in_tail_position)

    def tp_get(self, space: Space, instance: Value, owner: Value, /) -> Value:
        """From 3.13 on: it stays bound to what it is bound to."""
        return self

    def tp_getattribute(self, space: Space, name: Value) -> Value:
        text = attribute_name(space, name)
        if space.lookup(types.MethodType, text) is not None:
            return space.generic_getattr(self, text)
        return space.getattr(self.function, text)

    def tp_richcompare(self, space: Space, symbol: str, other: Value) -> Value:
        """`method_richcompare`: of one function, bound to one object."""
        if not isinstance(other, BoundMethod) or symbol not in ("==", "!="):
            return NOT_IMPLEMENTED
        same = space.is_(self.instance, other.instance) and space.is_(self.function, other.function)
        return bool_value(same == (symbol == "=="))

    def key(self, space: Space) -> Host:
        return ("bound method", *(IdentityKey(space.identity(part)) for part in (self.instance, self.function)))

    def describe(self) -> str:
        return f"method {self.function.force().describe()}"

    def rebuilt(self, writer: Writer) -> str:
        parts = f"{writer.expr(self.function)}, {writer.expr(self.instance)}"
        return writer.assign("method", f"{writer.const(types.MethodType)}({parts})")


class Bindable(Value):
    """A callable that is a method where a class has it."""

    __slots__ = ()

    def descr_get(self, space: Space, instance: Value | None, owner: type, in_tail_position: bool) -> Value:
        return self if instance is None else BoundMethod(self, instance)

    def tp_get(self, space: Space, instance: Value, owner: Value, /) -> Value:
        return self if instance.is_none() else BoundMethod(self, instance)


class Named(Known):
    """What a C type has in its dict: a function, a method or another descriptor, known by identity."""

    __slots__ = ()
    ALWAYS_EXISTING = True

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        self = cls(host, source)
        space.guard_identity(self)
        return self

    @property
    def name(self) -> str:
        """What the type's dict has it under, if the program has not moved it."""
        return fixed(self.host, "__name__")  # type: ignore[no-any-return]

    @property
    def owner(self) -> type:
        """The type whose objects it is for."""
        return fixed(self.host, "__objclass__")  # type: ignore[no-any-return]

    @property
    def qualname(self) -> str:
        """Its full name."""
        return fixed(self.host, "__qualname__")  # type: ignore[no-any-return]


@models(
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
)
class BuiltinValue(Named):
    """A C function or an unbound C method: what it does is in the table of `protocol`."""

    __slots__ = ()

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        owner = fixed(host, "__self__") if is_fixed(host, "__self__") else None  # a function, and no descriptor
        bound_to = owner is not None and not issubclass(type(owner), types.ModuleType) and not is_unbound(host)
        if bound_to and handler_of(host) is None:
            bound = _bound_builtin(space, host, owner, source)
            if bound is not None:
                return bound
        return super().from_host(space, host, source)

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        host = self.host
        if self.cls is types.BuiltinFunctionType and fixed(host, "__name__") == "__new__":
            check_new(space, host, args)
        elif self.cls is types.ClassMethodDescriptorType:
            self._check_class(space, args)
        return space.call_builtin(host, args, kwargs)

    def _check_class(self, space: Space, args: list[Value]) -> None:
        """`classmethod_get`: the class must be one whose method this is; CPython words the TypeError."""
        host = self.host
        given = args[0].force() if args else None
        if given is not None and given.isa(type) and is_subtype(space.sample(given), self.owner):
            return
        with host_errors(space, TypeError):
            host() if given is None else host.__get__(None, space.sample(given))
        raise Unsupported(errors.UnsupportedCCall(fixed(host, "__qualname__")))

    def descr_get(self, space: Space, instance: Value | None, owner: type, in_tail_position: bool) -> Value:
        if self.cls is types.BuiltinFunctionType:
            return self
        if self.cls is types.ClassMethodDescriptorType:
            return BoundBuiltin(self, space.class_value(owner))
        return self if instance is None else self._bound(space, instance)

    def _bound(self, space: Space, instance: Value) -> Value:
        needed = self.owner
        if not is_subtype(instance.cls, needed):
            name = f"descriptor '{self.name}' for '{space.type_name(needed)}' objects"
            raise space.error(TypeError, f"{name} doesn't apply to a '{instance.type_name(space)}' object")
        return BoundBuiltin(self, instance)

    def tp_get(self, space: Space, instance: Value, owner: Value, /) -> Value:
        if self.cls is types.ClassMethodDescriptorType:
            cls = space.class_value(instance.cls) if owner.is_none() else owner.force()
            self._check_class(space, [cls])
            return BoundBuiltin(self, cls)
        return self if instance.is_none() else self._bound(space, instance)

    def describe(self) -> str:
        return f"builtin {self.qualname}"


def _calling(host: Host) -> None:
    """`builtin_function_or_method.__call__` and `method-wrapper.__call__`, asked for by their name."""

    @builtin(host)
    def call(space: Space, self: Value, /, *args: Value, **kwargs: Value) -> Value:
        self = self.force()
        if not self.isa(host.__objclass__) or not isinstance(self, (BuiltinValue, BoundBuiltin)):
            return bad_call(space, host, [self, *args], kwargs)
        return self.call(space, list(args), kwargs, False)


def _equality(host: Host, equal: bool) -> None:
    """`meth_richcompare` and `wrapper_richcompare`: bound to one object, of one descriptor."""

    @builtin(host)
    def compare(space: Space, self: Value, other: Value, /) -> Value:
        self, other = self.force(), other.force()
        if not other.isa(host.__objclass__):
            return NOT_IMPLEMENTED
        if isinstance(self, BoundBuiltin) and isinstance(other, BoundBuiltin):
            same = space.is_(self.instance, other.instance) and _same_function(space, self, other)
        elif isinstance(self, BuiltinValue) and isinstance(other, BuiltinValue):
            same = self.host == other.host
        else:
            return space.unmodelled(host, [self, other], {})
        return bool_value(same is equal)


def _same_function(space: Space, one: BoundMethod, other: BoundMethod) -> bool:
    """Whether the two, bound to one object, are of one C function: a type may have it under two names."""
    if space.is_(one.function, other.function):
        return True
    hosts = [space.identity(method.function) for method in (one, other)]
    if not all(isinstance(host, types.MethodDescriptorType) for host in hosts):
        return False
    sample = space.sample(one.instance.force())
    left, right = (host.__get__(sample, type(sample)) for host in hosts)
    return bool(left == right)


@builtin(types.BuiltinFunctionType.__reduce__, types.MethodWrapperType.__reduce__)
def builtin_reduce(space: Space, self: Value, /) -> Value:
    """A function of a module is told by its name, a bound method by its object and its name."""
    self = self.force()
    if isinstance(self, BoundBuiltin):
        parts = [self.instance, space.getattr(self, "__name__")]
        return space.new_tuple([space.existing(getattr), space.new_tuple(parts)])
    host = space.identity(self)
    if not isinstance(host, types.BuiltinFunctionType) or not isinstance(host.__reduce__(), str):
        return space.unmodelled(types.BuiltinFunctionType.__reduce__, [self], {})
    space.guard_identity(self)
    return Constant(host.__reduce__())


@builtin(types.MethodType.__reduce__)
def method_reduce(space: Space, self: Value, /) -> Value:
    """A bound method is told by its object and the name of its function."""
    method = self.force()
    if not isinstance(method, BoundMethod):
        return space.unmodelled(types.MethodType.__reduce__, [self], {})
    parts = [method.instance, space.getattr(method.function, "__name__")]
    return space.new_tuple([space.existing(getattr), space.new_tuple(parts)])


for _cls in (types.BuiltinFunctionType, types.MethodWrapperType):
    _calling(_cls.__call__)
    _equality(_cls.__eq__, True)
    _equality(_cls.__ne__, False)


#: of classes whose instances C code alone makes
DISALLOW_INSTANTIATION = 1 << 7


def check_new(space: Space, host: Host, args: list[Value]) -> None:
    """`tp_new_wrapper`: the class must be one that this `__new__` can allocate; CPython words the TypeError."""
    cls = args[0].force() if args else None
    fits = cls is not None and cls.isa(type) and is_subtype(space.sample(cls), host.__self__)
    if fits and not space.sample(cls).__flags__ & DISALLOW_INSTANTIATION:  # type: ignore[arg-type]
        return
    with host_errors(space, TypeError):
        host(*[space.sample(a) for a in args])
    raise Unsupported(errors.UnsupportedCCall(fixed(host, "__qualname__")))


class BoundBuiltin(BoundMethod):
    """A C method bound to an instance (`[].append`): as a bound method, of another class."""

    __slots__ = ()
    FIELDS = {
        "__doc__": lambda self, space: space.getattr(self.function, "__doc__"),
        "__module__": lambda self, space: NONE if self.source is None else None,
        "__name__": lambda self, space: space.getattr(self.function, "__name__"),
        "__qualname__": lambda self, space: space.getattr(self.function, "__qualname__"),
        "__self__": lambda self, space: self.instance,
        "__text_signature__": lambda self, space: space.getattr(self.function, "__text_signature__"),
    }

    def __init__(self, function: Value, instance: Value) -> None:
        super().__init__(function, instance)
        wrapper = function.isa(types.WrapperDescriptorType)
        self.cls = types.MethodWrapperType if wrapper else types.BuiltinMethodType

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> BoundMethod:
        owner = host.__self__
        return BoundBuiltin(space.existing(type_lookup(type(owner), host.__name__)), space.fresh(owner))

    def tp_getattribute(self, space: Space, name: Value) -> Value:
        return space.generic_getattr(self, attribute_name(space, name))

    def rebuilt(self, writer: Writer) -> str:
        host = self.function.force().host
        instance = self.instance.force()
        if self.function.force().cls is types.ClassMethodDescriptorType:
            return writer.assign(
                fixed(host, "__name__"), f"{writer.expr(self.function)}.__get__(None, {writer.expr(instance)})"
            )
        # With the class: CPython's method_get dereferences it for METH_METHOD functions.
        parts = f"{writer.expr(self.function)}.__get__({writer.expr(instance)}, {writer.const(instance.cls)})"
        return writer.assign(fixed(host, "__name__"), parts)


class MethodWrapper(BoundBuiltin):
    """Slot wrappers bound to an instance (`(1).__add__`)."""

    __slots__ = ()
    tp_getattribute = None  # type: ignore[assignment]  # they are looked up as instances of most types are

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> BoundMethod:
        return _bound_builtin(space, host, fixed(host, "__self__"), source) or super().from_host(space, host, source)


MODELS[types.MethodWrapperType] = MethodWrapper


def _bound_builtin(space: Space, host: Host, owner: Any, source: Source) -> BoundMethod | None:
    """An existing bound C method, taken apart into descriptor and instance."""
    name = fixed(host, "__name__")
    function = getattr(type(owner), name, None)
    if issubclass(type(owner), type):  # isinstance would ask the object's own __class__
        function = type_lookup(owner, name)  # as far as it is what the method was made of
        if not isinstance(function, types.ClassMethodDescriptorType) or function.__get__(None, owner) != host:
            return None
        value = BoundBuiltin(space.existing(function), space.class_value(owner))
        value.source, value.host = source, host
        space.guard_identity_of(source, host)
        return value
    if not isinstance(function, types.MethodDescriptorType | types.WrapperDescriptorType):
        return None
    space.guard_type(host, source)
    instance_source = ConstSource(owner, "self") if source.is_constant else GetAttrSource(source, "__self__")
    space.guard_type(owner, instance_source)
    if not source.is_constant:
        space.trace.guard(Equals(GetAttrSource(source, "__name__"), name))
    bound = BoundBuiltin(space.existing(function), space.wrap(owner, instance_source))
    bound.source, bound.host = source, host
    return bound
