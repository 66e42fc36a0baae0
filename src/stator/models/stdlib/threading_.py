"""Locks made by the traced program: nobody else can hold one before it leaves the trace.

A lock that existed before breaks the graph: what happens between its acquisition and its release must not be put
off until after the release.
"""

from __future__ import annotations

import _thread
import threading

from stator.guards.source import Source
from stator.models.classes.instance import InstanceValue
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import bool_value, host_errors, known_host, refuse, refuse_use
from stator.space.protocol import FALSE, NONE, TRUE, builtin, models
from stator.space.space import Space
from stator.space.value import Constant, ObjectValue, Value

_LOCK = type(_thread.allocate_lock())
_RLOCK = type(threading.RLock())


class LockValue(ObjectValue):
    """A lock of either kind."""

    __slots__ = ("depth",)
    kind: type
    maker: Host

    def __init__(self) -> None:
        super().__init__(self.kind)
        self.depth = 0

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        if space.guard_type(host, source) is not cls.kind:
            return InstanceValue.from_host(space, host, source)
        self = cls()
        self.host, self.source = host, source
        return self

    def acquire(self, space: Space, blocking: Value = TRUE, timeout: Value = Constant(-1)) -> Value:  # noqa: B008
        waits = self._check_arguments(space, blocking, timeout)
        return self.tp_enter(space) if waits or not self.depth or self.kind is _RLOCK else FALSE

    def tp_enter(self, space: Space) -> Value:
        """Acquire, without waiting: a lock that cannot be had would wait for ever."""
        self.check_fresh("acquire")
        if self.depth and self.kind is _LOCK:
            raise refuse_use("lock.acquire", "of a lock that is held")
        space.mark_mutated(self)
        self.depth += 1
        return TRUE

    def _check_arguments(self, space: Space, *args: Value) -> bool:
        """Whether `acquire(*args)` would wait; arguments that do not go together are refused by a lock that is free."""
        self.check_fresh("acquire")
        blocking, timeout = (known_host(space, arg, f"{self.kind.__name__}.acquire") for arg in args)
        with host_errors(space, Exception):
            type(self).maker().acquire(blocking, timeout)
        return bool(blocking)

    def release(self, space: Space) -> Value:
        self.check_fresh("release")
        if not self.depth:
            words = "release unlocked lock" if self.kind is _LOCK else "cannot release un-acquired lock"
            raise space.error(RuntimeError, words)
        space.mark_mutated(self)
        self.depth -= 1
        return NONE

    def tp_exit(self, space: Space, *exc_info: Value) -> Value:
        return self.release(space)

    def locked(self, space: Space) -> Value:
        self.check_fresh("locked")
        return bool_value(self.depth > 0)

    def check_fresh(self, method: str) -> None:
        """A lock that existed before the trace breaks the graph."""
        if self.source is not None:
            raise refuse(f"{self.kind.__name__}.{method}")

    def rebuilt(self, writer: Writer) -> str:
        shell = writer.shell_of(self)
        if shell is not None:
            return shell
        name = str(writer.assign("lock", f"{writer.const(self.maker)}()"))
        writer.name_value(self, name)
        for _ in range(self.depth):
            writer.line(f"{name}.acquire()")
        return name


@models(_LOCK)
class PlainLock(LockValue):
    """`threading.Lock()`."""

    __slots__ = ()
    kind = _LOCK
    maker = _thread.allocate_lock

    if "__new__" in vars(_LOCK):  # since 3.13

        @staticmethod
        def tp_new(space: Space, cls: Value, /) -> Value:
            return PlainLock()


@models(_RLOCK)
class ReentrantLock(LockValue):
    """`threading.RLock()`."""

    __slots__ = ()
    kind = _RLOCK
    maker = threading.RLock

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        if args or kwargs or known_host(space, cls, "RLock.__new__") is not _RLOCK:
            raise refuse_use("RLock.__new__", "of a subclass, or with arguments")
        return ReentrantLock()

    def _is_owned(self, space: Space) -> Value:
        self.check_fresh("_is_owned")
        return bool_value(self.depth > 0)


@builtin(_thread.allocate_lock)
def new_lock(space: Space) -> Value:
    return PlainLock()
