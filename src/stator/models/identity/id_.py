"""`id` and thread idents: numbers that are guarded only where it matters what they are.

Two of them are compared by the objects they belong to, and serve as keys of dicts made by the trace; so copying an
object does not bind the trace to that object. Any other use takes the number itself, under a guard on the identity.
"""

from __future__ import annotations

import _thread
import types

from stator import errors
from stator.guards.guard import Equals
from stator.guards.source import CallSource, ConstSource
from stator.models.functions.method import BoundMethod
from stator.space.host_types import Host
from stator.space.identity.aliasing import separate, used_as_key
from stator.space.identity.keys import IdKey
from stator.space.identity.reachability import WeakTarget, is_alive
from stator.space.interfaces import Writer
from stator.space.operands import bool_value, hooked, refuse_use
from stator.space.protocol import bad_call, builtin
from stator.space.space import Space
from stator.space.value import Constant, NotKnown, Unsupported, Value, is_unique


def _alive(space: Space, value: Value, what: str) -> Value:
    """An object that the program still has: of another one, the next object may lie in its place."""
    if value.source is None and not is_unique(value.host) and not is_alive(space, value):
        raise Unsupported(errors.LifetimeObserved(f"the {what} an object that is gone"))
    return value


class IdValue(Value):
    """`id(target)`."""

    __slots__ = ("_target",)

    def __init__(self, target: Value) -> None:
        self.cls = int
        self.source = None
        self._target = WeakTarget(target)

    @property
    def target(self) -> Value:
        """The object whose number it is."""
        target = self._target.get()
        if target is None:
            raise Unsupported(errors.LifetimeObserved("the id of an object that is gone"))
        return target

    def anchor(self, space: Space) -> Host:
        """The object whose number it is."""
        return space.identity(_alive(space, self.target, "id of"))

    def same(self, space: Space, other: IdValue) -> bool:
        """Whether the other, of the same kind, is the same number."""
        one = self.anchor(space) is other.anchor(space)
        if not one:
            separate(space, self.target, other.target)
        return one

    def as_host(self, space: Space) -> Host:
        host = self.anchor(space)
        if isinstance(host, Value):
            raise NotKnown(self)
        space.guard_identity_of(self.target.source, host)
        return id(host)

    def key(self, space: Space) -> Host:
        used_as_key(space, self.target)
        return IdKey(self, self.anchor(space))

    def describe(self) -> str:
        return f"the id of {self.target.describe()}"

    def reconstruct(self, writer: Writer) -> str:
        self.anchor(writer.trace.space)
        return str(writer.assign("id_", f"id({writer.expr(self.target)})"))


class HashValue(IdValue):
    """`object.__hash__(target)`: other objects have other ones, as the ids have."""

    __slots__ = ()

    def as_host(self, space: Space) -> Host:
        super().as_host(space)
        return object.__hash__(self.anchor(space))

    def key(self, space: Space) -> Host:
        raise refuse_use("object.__hash__", "for a key")

    def describe(self) -> str:
        return f"the hash of {self.target.describe()}"

    def reconstruct(self, writer: Writer) -> str:
        self.anchor(writer.trace.space)
        return str(writer.assign("hash_", f"{writer.const(object.__hash__)}({writer.expr(self.target)})"))


@builtin(object.__hash__)
def object_hash(space: Space, value: Value, /) -> Value:
    return HashValue(value.force())


class MethodHash(HashValue):
    """The hash of a method: that of the id of what it is bound to, mixed with its function's."""

    __slots__ = ("method",)

    def __init__(self, method: BoundMethod) -> None:
        super().__init__(method)
        self.method = method

    def anchor(self, space: Space) -> Host:
        """What the method is bound to."""
        return space.identity(_alive(space, self.method.instance.force(), "hash of a method of"))

    def as_host(self, space: Space) -> Host:
        instance, function = self.anchor(space), space.identity(self.method.function)
        if isinstance(instance, Value) or isinstance(function, Value):
            raise NotKnown(self)
        for part in (self.method.instance.force(), self.method.function.force()):
            space.guard_identity_of(part.source, space.identity(part))
        on_class = isinstance(function, types.ClassMethodDescriptorType)
        return hash(function.__get__(None, instance) if on_class else function.__get__(instance, type(instance)))

    def same(self, space: Space, other: IdValue) -> bool:
        """Of methods of different functions it is not known whether the mixtures are equal."""
        assert isinstance(other, MethodHash)
        if self.method is other.method:
            return True
        if not space.is_(self.method.function, other.method.function):
            raise refuse_use("hash", "of a method that is compared with another")
        one = self.anchor(space) is other.anchor(space)
        if not one:
            separate(space, self.method.instance.force(), other.method.instance.force())
        return one

    def reconstruct(self, writer: Writer) -> str:
        self.anchor(writer.trace.space)
        return str(writer.assign("hash_", f"{writer.const(hash)}({writer.expr(self.method)})"))


def _method_hash(host: Host) -> None:
    @builtin(host)
    def model(space: Space, method: Value, /) -> Value:
        """Two are equal only if they are bound to one object."""
        method = method.force()
        if not method.isa(host.__objclass__):
            return bad_call(space, host, [method], {})
        if isinstance(method, BoundMethod):
            if space.host_lookup(method.function.force().cls, "__hash__") is not object.__hash__:
                raise refuse_use("hash", "of a method of a callable with a hash of its own")
            return MethodHash(method)
        known = space.identity(method)
        space.guard_identity_of(method.source, known)
        return Constant(hash(known))


for _cls in (types.MethodType, types.BuiltinFunctionType, types.MethodWrapperType):
    _method_hash(_cls.__hash__)


_THREADS = Constant(_thread)


class ThreadIdent(IdValue):
    """`threading.get_ident()`."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_THREADS)

    def anchor(self, space: Space) -> Host:
        return _thread

    def as_host(self, space: Space) -> Host:
        ident = _thread.get_ident()
        space.trace.guard(Equals(CallSource(_ident, ConstSource(_thread, "_thread"), "get_ident"), ident))
        return ident

    def describe(self) -> str:
        return "the ident of the thread"

    def reconstruct(self, writer: Writer) -> str:
        return str(writer.assign("ident", f"{writer.const(_thread.get_ident)}()"))


def _ident(module: Host) -> int:
    return int(module.get_ident())


@builtin(id)
def id_(space: Space, value: Value, /) -> Value:
    return IdValue(value.force())


@builtin(_thread.get_ident)
def get_ident(space: Space) -> Value:
    return ThreadIdent()


def _comparison(host: Host, same: bool) -> None:
    def model(space: Space, left: Value, right: Value, /) -> Value:
        left, right = left.force(), right.force()
        if isinstance(left, IdValue) and isinstance(right, IdValue) and type(left) is type(right):
            if left.target.symbolic or right.target.symbolic:
                raise refuse_use("id", "of a number that varies")
            return bool_value(left.same(space, right) == same)
        if isinstance(left, IdValue) or isinstance(right, IdValue):  # no computing with an id: the number is fixed
            left, right = (Constant(space.int_(value)) if value.symbolic else value for value in (left, right))
        return hooked(space, host, [left, right])

    builtin(host)(model)


_comparison(int.__eq__, True)
_comparison(int.__ne__, False)
