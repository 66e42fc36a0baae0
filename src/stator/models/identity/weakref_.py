"""weakref.ref.

An existing reference leads to its referent. A reference to an object made by the traced program can be made and passed
on; following it breaks the graph unless the object is certainly alive, or certainly dead.
"""

from __future__ import annotations

import weakref
from typing import Any

from stator import errors
from stator.bytecode.continuation import is_continuation
from stator.guards.guard import Predicate
from stator.guards.source import CallSource, Source, WeakrefSource
from stator.models.classes.instance import fill
from stator.models.identity.weaklist import PlainRefs
from stator.space.host_types import Host
from stator.space.identity.keys import RefKey
from stator.space.identity.reachability import WeakTarget, is_alive, may_have_died
from stator.space.interfaces import Writer
from stator.space.operands import bool_value
from stator.space.protocol import NONE, NOT_IMPLEMENTED, models
from stator.space.space import Space
from stator.space.value import ExtensibleValue, Lazy, Unsupported, Value


def _is_dead(reference: Host) -> bool:
    return weakref.ref.__call__(reference) is None


def _callback(reference: Host) -> Any:
    return weakref.ref.__dict__["__callback__"].__get__(reference)


@models(weakref.ref)
class RefValue(ExtensibleValue):
    """A weak reference; `referent` is None where it is dead."""

    __slots__ = ("_key", "_target", "callback", "slots")
    FIELDS = {"__callback__": lambda self, space: self.callback}

    def __init__(self, referent: Value | None, callback: Value = NONE, cls: type = weakref.ref) -> None:
        super().__init__(cls)
        self._target = WeakTarget(referent)
        #: the key, with the hash that references keep once they have been asked for it
        self._key: RefKey | None = None
        self.callback = callback
        self.slots: dict[Host, Value | None] = {}

    @property
    def referent(self) -> Value | None:
        return self._target.get()

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> RefValue:
        own = space.guard_type(host, source)
        referent = weakref.ref.__call__(host)
        if referent is None:
            space.trace.guard(Predicate((source,), _is_dead, f"{source.expr()} is dead"))
            self = cls(None, NONE, own)
        else:
            callback = CallSource(_callback, source, "callback")
            self = cls(space.wrap(referent, WeakrefSource(source)), space.wrap(_callback(host), callback), own)
        self.host, self.source = host, source
        return self

    @staticmethod
    def tp_new(space: Space, cls: Value, referent: Value, callback: Value = NONE, /) -> Value:
        host: type = cls.force().as_host(space)
        referent, callback = referent.force(), callback.force()
        if not referent.cls.__weakrefoffset__:
            raise space.error(TypeError, f"cannot create weak reference to '{referent.type_name(space)}' object")
        if referent.source is None:
            refer_to_new(space, referent, callback)
        elif not callback.is_none():
            call_back_for(space, referent)
        if host is weakref.ref and callback.is_none():
            # One object is referred to by one plain reference.
            known = space.trace.extension(PlainRefs).refs
            found = known.get(id(referent))
            if found is None or found.referent is not referent:
                found = known[id(referent)] = RefValue(referent)
            return found
        return RefValue(referent, callback, host)

    def tp_init(self, space: Space, referent: Value, callback: Value = NONE, /) -> Value:
        return NONE

    def tp_call(self, space: Space) -> Value:
        return self.follow(space)

    def follow(self, space: Space) -> Value:
        """`ref()`."""
        referent = self.referent
        if referent is None:
            return NONE
        if referent.source is None and not is_alive(space, referent):
            raise Unsupported(errors.LifetimeObserved("following a weak reference to a new object"))
        if referent.source is not None and _may_have_died(space, referent):
            raise Unsupported(errors.LifetimeObserved("following a weak reference to what has been let go of"))
        return referent

    def tp_richcompare(self, space: Space, symbol: str, other: Value) -> Value:
        if not isinstance(other, RefValue) or symbol not in ("==", "!="):
            return NOT_IMPLEMENTED
        mine, theirs = self.referent, other.referent
        if mine is None or theirs is None:
            return bool_value(space.is_(self, other) == (symbol == "=="))
        return space.compare(symbol, mine, theirs)

    def tp_hash(self, space: Space) -> Value:
        referent = self.referent
        if referent is None:
            raise Unsupported(errors.UnsupportedMethod("weakref.ReferenceType", "__hash__"))
        return space.hash(referent)

    def key(self, space: Space) -> Host:
        referent = self.referent
        if self._key is None:
            if referent is None:
                raise Unsupported(errors.UnsupportedMethod("weakref.ReferenceType", "__hash__"))
            self._key = RefKey(referent.force().key(space))
        return self._key

    def rebuilt(self, writer: Writer) -> str:
        referent = self.referent
        shown = f"{writer.const(_Mortal)}()" if referent is None else writer.expr(referent)
        parts = [shown, writer.expr(self.callback)]
        ref = writer.const(weakref.ref)
        name: str = writer.assign("ref", f"{ref}.__new__({writer.const(self.cls)}, {', '.join(parts)})")
        writer.name_value(self, name)
        fill(self, writer, name)
        return name


class _Mortal:
    """What a reference that is dead has led to."""


def refer_to_new(space: Space, referent: Value, callback: Value) -> None:
    """A weak reference to an object made by the trace, which may die unseen."""
    if not callback.is_none() and not referent.isa(type):  # a class waits for the collector
        raise Unsupported(errors.LifetimeObserved("a callback for the death of a new object"))
    # What is resumed after a break need not hold the object as long as the frame would.
    space.trace.root.unresumable = errors.LifetimeObserved("a weak reference to a new object")


def call_back_for(space: Space, referent: Value) -> None:
    """A callback for the death of an existing object: called at once where the frame alone keeps the object."""
    trace = space.trace
    if is_continuation(trace.root.code) and any(arg is space.identity(referent) for arg in trace.root.args):
        raise Unsupported(errors.LifetimeObserved("a callback for the death of what a variable holds"))
    trace.finalizers.calls_back += (space.identity(referent),)


def _may_have_died(space: Space, referent: Value) -> bool:
    """Whether the traced program has let go of the existing object, which the real frame keeps."""
    if space.trace.finalizers.prologue is not None:
        return True  # only garbage may have led to it
    host = referent.host if isinstance(referent, Lazy) else space.identity(referent)
    return may_have_died(space.trace, host)
