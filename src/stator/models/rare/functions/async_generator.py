"""Async generators, and what awaits their next item: the end of `Objects/genobject.c`."""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Callable
from typing import Any

from stator import errors
from stator.guards.guard import Equals
from stator.guards.source import CallSource, ConstSource
from stator.host.version_facts import ASYNC_STEPS_THROW_FIRST, ASYNC_STEPS_WARN
from stator.models.functions.suspendable import (
    AwaitableIterator,
    Suspendable,
    fields_of,
    stop_with,
    thrown,
    warn_of_parts,
)
from stator.space.host_types import Host
from stator.space.interfaces import Frame, Writer
from stator.space.protocol import NONE, models
from stator.space.space import Space
from stator.space.value import Raised, Unsupported, Value

_ENDS = (StopAsyncIteration, GeneratorExit)


async def _nothing() -> Any:
    yield


def _awaitables() -> tuple[type, type]:
    """The types of what `asend` and `aclose` give; the hooks of the program are not told of the generator."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)
    try:
        probe = _nothing()
        sender, closer = probe.asend(None), probe.aclose()
        sender.close()
        closer.close()
        return type(sender), type(closer)
    finally:
        sys.set_asyncgen_hooks(*hooks)


_SEND: Any
_THROW: Any
_SEND, _THROW = _awaitables()


class Wrapped(Value):
    """What `yield` of an async generator hands on, as against what it awaits."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.cls = type(None)  # no object of the program's
        self.source = None
        self.value = value


def _hooks(_: object) -> tuple[Host, ...]:
    return tuple(sys.get_asyncgen_hooks())


@models(types.AsyncGeneratorType)
class AsyncGeneratorValue(Suspendable):
    """An async generator; `awaited` while an awaitable of its own is running it, `closed` once it has ended."""

    __slots__ = ("awaited", "closed")
    FIELDS = fields_of("ag", "await")
    kind = "async generator"

    def __init__(self, frame: Frame | None, cls: type = types.AsyncGeneratorType) -> None:
        super().__init__(frame, cls)
        self.awaited = False
        self.closed = False

    def exhausted(self, space: Space) -> Raised:
        return space.error(StopAsyncIteration)

    def ended(self, space: Space, result: Value) -> Raised:
        return space.error(StopAsyncIteration)

    def step(self, space: Space, advance: Callable[[], Value]) -> Value:
        """`async_gen_unwrap_value`: what is awaited; what is yielded, or the end, is raised."""
        try:
            found = advance()
        except Raised as e:
            if e.matches(_ENDS):
                self.closed = True
            self.awaited = False
            raise
        if type(found) is not Wrapped:
            return found
        self.awaited = False
        raise stop_with(space, found.value)

    def _begin(self, space: Space) -> None:
        """`async_gen_init_hooks`: the hooks of an event loop are called outside."""
        self.own()
        hooks = _hooks(None)
        if hooks != (None, None):
            name = self.kind if self.frame is None else f"{self.kind} {self.frame.code.co_qualname}"
            raise Unsupported(errors.SuspendedCoroutine(name))
        space.trace.guard(Equals(CallSource(_hooks, ConstSource(sys, "sys"), "asyncgen_hooks"), hooks))

    # -- methods ----------------------------------------------------------------------------------------------------

    def tp_aiter(self, space: Space) -> Value:
        return self

    def tp_anext(self, space: Space) -> Value:
        self._begin(space)
        return SendValue(self, NONE)

    def asend(self, space: Space, value: Value, /) -> Value:
        self._begin(space)
        return SendValue(self, value)

    def athrow(self, space: Space, *args: Value) -> Value:
        warn_of_parts(space, "athrow", args[1] if len(args) > 1 else None)
        self._begin(space)
        return ThrowValue(self, args)

    def aclose(self, space: Space) -> Value:
        self._begin(space)
        return ThrowValue(self, None)

    def tp_del(self, space: Space) -> Value:
        """`_PyGen_Finalize`, without the hook of an event loop: the generator is closed."""
        self.own()
        if not self.started:
            self.finish(space)
            return NONE
        try:
            self.throw_in(space, space.error(GeneratorExit))
        except Raised as e:
            if e.matches(_ENDS):
                return NONE
            raise
        raise space.error(RuntimeError, "async generator ignored GeneratorExit")

    # -- attributes and the rest ------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        return self.awaited

    def describe(self) -> str:
        return "an async generator"

    def first_step(self, writer: Writer, name: str) -> str:
        return f"{writer.const(advance)}({name})"

    def rebuilt(self, writer: Writer) -> str:
        if self.awaited:
            raise Unsupported(errors.NotReconstructible("an async generator that is awaited"))
        return writer.generator(self)


class _Awaitable(AwaitableIterator):
    """What runs an async generator to its next item: created, running ("awaited"), or finished ("closed")."""

    __slots__ = ("generator", "state")
    #: what it is called where it is used again, and where the generator is running already
    reused: str
    #: the method that has made it
    method: str

    def __init__(self, generator: AsyncGeneratorValue, cls: type) -> None:
        super().__init__(cls)
        self.generator = generator
        self.state = "created"

    def begin(self, space: Space, method: str) -> None:
        """From "created" to "awaited"."""
        if self.generator.awaited:
            self.state = "closed"
            raise space.error(RuntimeError, f"{method}(): asynchronous generator is already running")
        self.state = "awaited"
        self.generator.awaited = True

    def check_open(self, space: Space) -> None:
        space.mark_mutated(self)
        if self.state == "closed":
            raise space.error(RuntimeError, f"cannot reuse already awaited {self.reused}")

    def throw(self, space: Space, kind: Value, value: Value | None = None, traceback: Value | None = None, /) -> Value:
        warn_of_parts(space, "throw", value)
        self.check_open(space)
        return self.thrown(space, thrown(space, kind, value, traceback))

    def thrown(self, space: Space, raised: Raised) -> Value:
        raise NotImplementedError

    def close(self, space: Space) -> Value:
        if not ASYNC_STEPS_THROW_FIRST or self.state == "closed":
            space.mark_mutated(self)
            self.state = "closed"
            return NONE
        try:
            self.check_open(space)
            self.thrown(space, space.error(GeneratorExit))
        except Raised as e:
            if e.matches((StopIteration, *_ENDS)):
                return NONE
            raise
        raise space.error(RuntimeError, "coroutine ignored GeneratorExit")

    def __del__(self) -> None:
        frame = self.generator.frame
        if ASYNC_STEPS_WARN and self.state == "created" and frame is not None:
            frame.trace.finalizers.close_later(self)

    def tp_del(self, space: Space) -> Value:
        """`_PyErr_WarnUnawaitedAgenMethod`."""
        name = space.getattr(self.generator, "__qualname__")
        shown = f"coroutine method {self.method!r} of {space.str_(name)!r} was never awaited"
        try:
            space.warn(RuntimeWarning, shown)
        except Raised:
            raise Unsupported(errors.UnsupportedMethod(self.cls.__name__, "__del__")) from None
        return NONE

    def describe(self) -> str:
        return f"an {self.cls.__name__}"


@models(_SEND)
class SendValue(_Awaitable):
    """`generator.asend(value)`, `generator.__anext__()`."""

    __slots__ = ("sent",)
    reused = "__anext__()/asend()"
    method = "asend"

    def __init__(self, generator: AsyncGeneratorValue, sent: Value) -> None:
        super().__init__(generator, _SEND)
        self.sent = sent

    def send(self, space: Space, value: Value, /) -> Value:
        self.check_open(space)
        if self.state == "created":
            self.begin(space, "anext")
            if value.is_none():
                value = self.sent
        return self._step(space, lambda: self.generator.resume(space, value))

    def thrown(self, space: Space, raised: Raised) -> Value:
        if ASYNC_STEPS_THROW_FIRST and self.state == "created":
            self.begin(space, "anext")
        return self._step(space, lambda: self.generator.throw_in(space, raised))

    def _step(self, space: Space, advance: Callable[[], Value]) -> Value:
        try:
            return self.generator.step(space, advance)
        except Raised:
            self.state = "closed"
            raise

    def rebuilt(self, writer: Writer) -> str:
        if self.state != "created":
            return super().rebuilt(writer)
        return writer.assign("send", f"{writer.expr(self.generator)}.asend({writer.expr(self.sent)})")


@models(_THROW)
class ThrowValue(_Awaitable):
    """`generator.athrow(exception)`, and `generator.aclose()`, which throws GeneratorExit: `thrown_in` is None."""

    __slots__ = ("thrown_in",)
    reused = "aclose()/athrow()"

    def __init__(self, generator: AsyncGeneratorValue, thrown_in: tuple[Value, ...] | None) -> None:
        super().__init__(generator, _THROW)
        self.thrown_in = thrown_in

    @property
    def method(self) -> str:  # type: ignore[override]
        return "aclose" if self.thrown_in is None else "athrow"

    def send(self, space: Space, value: Value, /) -> Value:
        self.check_open(space)
        target = self.generator
        if target.frame is None:
            self.state = "closed"
            raise space.error(StopIteration)
        if self.state == "created":
            if not target.awaited and target.closed:
                self.state = "closed"
                raise space.error(StopAsyncIteration)
            if not target.awaited and not value.is_none():
                raise space.error(RuntimeError, "can't send non-None value to a just-started coroutine")
            self.begin(space, self.method)
            return self._step(space, lambda: self._throw_first(space))
        return self._step(space, lambda: target.resume(space, value))

    def _throw_first(self, space: Space) -> Value:
        target = self.generator
        if self.thrown_in is None:
            target.closed = True
            return target.throw_in(space, space.error(GeneratorExit), closing=False)
        count = len(self.thrown_in)
        if not 1 <= count <= 3:
            bound = "at least 1 argument" if count < 1 else "at most 3 arguments"
            raise space.error(TypeError, f"athrow expected {bound}, got {count}")
        value, traceback = (*self.thrown_in[1:], None, None)[:2]
        return target.throw_in(space, thrown(space, self.thrown_in[0], value, traceback), closing=False)

    def thrown(self, space: Space, raised: Raised) -> Value:
        if ASYNC_STEPS_THROW_FIRST and self.state == "created":
            self.begin(space, self.method)
        return self._step(space, lambda: self.generator.throw_in(space, raised))

    def _step(self, space: Space, advance: Callable[[], Value]) -> Value:
        target = self.generator
        try:
            if self.thrown_in is not None:
                return target.step(space, advance)
            found = advance()
        except Raised as e:
            target.awaited = False
            self.state = "closed"
            if self.thrown_in is None and e.matches(_ENDS):
                raise space.error(StopIteration) from None
            raise
        if type(found) is not Wrapped:
            return found
        target.awaited = False
        self.state = "closed"
        raise space.error(RuntimeError, "async generator ignored GeneratorExit")

    def rebuilt(self, writer: Writer) -> str:
        if self.state != "created":
            return super().rebuilt(writer)
        args = ", ".join([writer.expr(part) for part in self.thrown_in or ()])
        return writer.assign(self.method, f"{writer.expr(self.generator)}.{self.method}({args})")


def advance(generator: Host) -> None:
    """Run an async generator to its first `yield`, or to its end."""
    with contextlib.suppress(StopIteration, StopAsyncIteration):
        generator.asend(None).send(None)


__all__ = ["AsyncGeneratorValue", "Wrapped"]
