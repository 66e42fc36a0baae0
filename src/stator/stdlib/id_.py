"""`id` and thread idents: numbers that are guarded only where it matters what they are.

Two of them are compared by the objects they belong to, and serve as keys of dicts made by the trace; so copying an
object does not bind the trace to that object. Any other use takes the number itself, under a guard on the identity.
"""

from __future__ import annotations

import _thread
import sys
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.guards.guard import Equals
from stator.guards.source import CallSource, ConstSource
from stator.objects.identities import separate, used_as_key
from stator.objects.keys import IdKey
from stator.objects.protocol import builtin
from stator.objects.value import Constant, NotKnown, Unsupported, Value
from stator.stdlib.support import bool_value, hooked, refuse

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.residual.writer import Writer


#: references to the value of an object that only its id leads to: that of the id, and the argument of getrefcount
_HELD_HERE_ONLY = 2


class IdValue(Value):
    """`id(target)`."""

    __slots__ = ("target",)

    def __init__(self, target: Value) -> None:
        self.cls = int
        self.source = None
        self.target = target

    def anchor(self, space: Space) -> Any:
        """The object whose number it is."""
        if self.target.source is None and sys.getrefcount(self.target) <= _HELD_HERE_ONLY:
            # The program has let go of the object, and the next one may lie in its place.
            raise Unsupported(errors.LifetimeObserved("the id of an object that is gone"))
        return space.identity(self.target)

    def as_host(self, space: Space) -> Any:
        host = self.anchor(space)
        if isinstance(host, Value):
            raise NotKnown(self)
        space.guard_identity_of(self.target.source, host)
        return id(host)

    def key(self, space: Space) -> Any:
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

    def as_host(self, space: Space) -> Any:
        super().as_host(space)
        return object.__hash__(self.anchor(space))

    def key(self, space: Space) -> Any:
        raise refuse("object.__hash__, whose result is a key")

    def describe(self) -> str:
        return f"the hash of {self.target.describe()}"

    def reconstruct(self, writer: Writer) -> str:
        self.anchor(writer.trace.space)
        return str(writer.assign("hash_", f"{writer.const(object.__hash__)}({writer.expr(self.target)})"))


@builtin(object.__hash__)
def object_hash(space: Space, value: Value, /) -> Value:
    return HashValue(value.force())


class ThreadIdent(IdValue):
    """`threading.get_ident()`."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(Constant(_thread))

    def anchor(self, space: Space) -> Any:
        return _thread

    def as_host(self, space: Space) -> Any:
        ident = _thread.get_ident()
        space.trace.guard(Equals(CallSource(_ident, ConstSource(_thread, "_thread"), "get_ident"), ident))
        return ident

    def describe(self) -> str:
        return "the ident of the thread"

    def reconstruct(self, writer: Writer) -> str:
        return str(writer.assign("ident", f"{writer.const(_thread.get_ident)}()"))


def _ident(module: Any) -> int:
    return int(module.get_ident())


@builtin(id)
def id_(space: Space, value: Value, /) -> Value:
    return IdValue(value.force())


@builtin(_thread.get_ident)
def get_ident(space: Space) -> Value:
    return ThreadIdent()


def _comparison(host: Any, same: bool) -> None:
    def model(space: Space, left: Value, right: Value, /) -> Value:
        left, right = left.force(), right.force()
        if isinstance(left, IdValue) and isinstance(right, IdValue) and type(left) is type(right):
            if left.target.symbolic or right.target.symbolic:
                raise refuse("id of a number that varies")
            one = left.anchor(space) is right.anchor(space)
            if not one:
                separate(space, left.target, right.target)
            return bool_value(one == same)
        return hooked(space, host, [left, right])

    builtin(host)(model)


_comparison(int.__eq__, True)
_comparison(int.__ne__, False)
