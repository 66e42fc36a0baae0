"""Locks. One made by the traced program nobody else can hold before it leaves the trace.

One that existed before is taken by generated code, with what the program does under it (see `critical_section`).
Whether it is free at the moment nobody can say, so to ask for that breaks the graph.
"""

from __future__ import annotations

import _thread
import threading

from stator.guards.source import Source
from stator.models.classes.instance import InstanceValue
from stator.models.stdlib.critical_section import CriticalSection
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import bool_value, host_errors, known_host, refuse, refuse_use
from stator.space.protocol import FALSE, NONE, TRUE, builtin, models
from stator.space.space import Space
from stator.space.value import Constant, ObjectValue, Unsupported, Value

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
        """Acquire. A lock that the program holds already would wait for ever."""
        if self.depth and self.kind is _LOCK:
            raise refuse_use("lock.acquire", "of a lock that is held")
        if self.source is not None and not self.depth:
            section = space.trace.extension(CriticalSection)
            if not section.may_take(self):
                raise self.refusal("acquire")
            section.take(self)
        space.mark_mutated(self)
        self.depth += 1
        return TRUE

    def _check_arguments(self, space: Space, *args: Value) -> bool:
        """Whether `acquire(*args)` would wait; arguments that do not go together are refused by a lock that is free."""
        blocking, timeout = (known_host(space, arg, f"{self.kind.__name__}.acquire") for arg in args)
        with host_errors(space, Exception):
            type(self).maker().acquire(blocking, timeout)
        if not blocking or timeout != -1:
            self.check_known("acquire")
        return bool(blocking)

    def release(self, space: Space) -> Value:
        self.check_known("release")
        if not self.depth:
            words = "release unlocked lock" if self.kind is _LOCK else "cannot release un-acquired lock"
            raise space.error(RuntimeError, words)
        space.mark_mutated(self)
        self.depth -= 1
        if self.source is not None:
            space.trace.extension(CriticalSection).released()
        return NONE

    def tp_exit(self, space: Space, *exc_info: Value) -> Value:
        return self.release(space)

    def locked(self, space: Space) -> Value:
        self.check_known("locked")
        return bool_value(self.depth > 0)

    def check_known(self, method: str) -> None:
        """Whether it is free is known of a lock that the program has made, or holds."""
        if self.source is not None and not self.depth:
            raise self.refusal(method)

    def refusal(self, method: str) -> Unsupported:
        """The break at a method of an existing lock."""
        return refuse(f"{self.kind.__name__}.{method}")

    def effects(self, writer: Writer) -> list[str]:
        """Generated code holds existing locks around all effects."""
        return []

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
        self.check_known("_is_owned")
        return bool_value(self.depth > 0)


@builtin(_thread.allocate_lock)
def new_lock(space: Space) -> Value:
    return PlainLock()
