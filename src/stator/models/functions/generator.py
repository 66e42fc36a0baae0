"""Generators and coroutines: suspended frames."""

from __future__ import annotations

import inspect
import sys
import types
import warnings
from typing import Any

from stator import errors
from stator.guards.guard import Equals
from stator.guards.source import CallSource, ConstSource
from stator.host.version_facts import AWAITING_NAMES_THE_TYPE_FIRST, CLOSE_RETURNS_A_VALUE
from stator.models.exceptions import exception
from stator.models.functions.suspendable import (
    AwaitableIterator,
    Suspendable,
    fields_of,
    stop_with,
    thrown,
    warn_of_parts,
)
from stator.space.interfaces import Frame, Writer
from stator.space.operands import call_slot
from stator.space.protocol import NONE, model_for, models
from stator.space.space import Space
from stator.space.value import Raised, Unsupported, Value


def _depth(_: object) -> int:
    return sys.get_coroutine_origin_tracking_depth()


def _refuse_origins(space: Space) -> None:
    """Break where the interpreter is told to keep in each new coroutine by which frames it was made."""
    depth = CallSource(_depth, ConstSource(sys, "sys"), "coroutine_origin_tracking_depth")
    if _depth(None):
        raise Unsupported(errors.UnsupportedMethod("coroutine", "cr_origin"))
    space.trace.guard(Equals(depth, 0))


@models(types.GeneratorType, types.CoroutineType)
class GeneratorValue(Suspendable):
    """A generator or coroutine."""

    __slots__ = ()
    FIELDS = fields_of("gi", "yieldfrom") | fields_of("cr", "await") | {"cr_origin": lambda self, space: NONE}

    def __init__(self, frame: Frame | None, cls: type = types.GeneratorType) -> None:
        super().__init__(frame, cls)
        if frame is not None and self.is_coroutine:
            self.protected = True
            frame.trace.finalizers.suspended_in_finally.add(self)

    @property
    def is_coroutine(self) -> bool:
        return self.cls is types.CoroutineType

    @property
    def is_awaitable(self) -> bool:
        """`PyCoro_CheckExact` or `gen_is_coroutine`: whether `await` takes it as it is."""
        if self.is_coroutine:
            return True
        self.own()
        return bool(self.code.co_flags & inspect.CO_ITERABLE_COROUTINE)

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "coroutine" if self.is_coroutine else "generator"

    # -- resuming ---------------------------------------------------------------------------------------------------

    def exhausted(self, space: Space) -> Raised:
        if self.is_coroutine:
            return space.error(RuntimeError, "cannot reuse already awaited coroutine")
        return space.error(StopIteration)

    def thrown_late(self, space: Space, raised: Raised) -> Raised:
        return self.exhausted(space) if self.is_coroutine else raised

    def ended(self, space: Space, result: Value) -> Raised:
        return space.error(StopIteration) if result.is_none() else stop_with(space, result)

    def next_value(self, space: Space) -> Value | None:
        try:
            return self.send(space, NONE)
        except Raised as e:
            if e.matches(StopIteration) and not self.is_coroutine:
                space.stopped_by(e.value)
                return None
            raise

    def tp_next(self, space: Space) -> Value:
        return self.send(space, NONE)

    def tp_iter(self, space: Space) -> Value:
        return self

    def tp_await(self, space: Space) -> Value:
        return CoroutineWrapper(self)

    def send(self, space: Space, value: Value) -> Value:
        """`generator.send(value)`; the end is a StopIteration raised."""
        return self.resume(space, value)

    def throw(self, space: Space, kind: Value, value: Value | None = None, traceback: Value | None = None) -> Value:
        """`generator.throw(exception)`."""
        self.own()
        warn_of_parts(space, "throw", value)
        return self.throw_in(space, thrown(space, kind, value, traceback))

    def close(self, space: Space) -> Value:
        """`generator.close()`."""
        self.own()
        if self.frame is None:
            return NONE
        if not self.started:
            self.finish(space)
            return NONE
        try:
            self.throw_in(space, space.error(GeneratorExit))
        except Raised as e:
            if e.matches(StopIteration) and CLOSE_RETURNS_A_VALUE:
                return space.getattr(e.value, "value")
            if e.matches((GeneratorExit, StopIteration)):
                return NONE
            raise
        raise space.error(RuntimeError, f"{self.kind} ignored GeneratorExit")

    def tp_del(self, space: Space) -> Value:
        """`_PyGen_Finalize`: a close whose errors go to the hook for them."""
        self.own()
        if self.frame is None:
            return NONE
        try:
            if self.is_coroutine and not self.started:
                space.call_method(space.existing(warnings), "_warn_unawaited_coroutine", self)
            self.close(space)
        except Raised:
            raise Unsupported(errors.UnsupportedMethod(self.kind, "__del__")) from None
        return NONE

    def is_finalised(self, frame: Frame) -> bool:
        return (self.is_coroutine and not self.started) or super().is_finalised(frame)

    # -- attributes and the rest ------------------------------------------------------------------------------------

    def describe(self) -> str:
        return f"a {self.kind}"

    def first_step(self, writer: Writer, name: str) -> str:
        return f"{name}.send(None)" if self.is_coroutine else f"next({name})"

    def rebuilt(self, writer: Writer) -> str:
        return writer.generator(self)


async def _nothing() -> None: ...


_probe = _nothing()
_WRAPPER: Any = type(_probe.__await__())
_probe.close()


@models(_WRAPPER)
class CoroutineWrapper(AwaitableIterator):
    """`coroutine.__await__()`: its iterator."""

    __slots__ = ("coroutine",)

    def __init__(self, coroutine: GeneratorValue) -> None:
        super().__init__(_WRAPPER)
        self.coroutine = coroutine

    def send(self, space: Space, value: Value, /) -> Value:
        return self.coroutine.send(space, value)

    def throw(self, space: Space, kind: Value, value: Value | None = None, traceback: Value | None = None, /) -> Value:
        return self.coroutine.throw(space, kind, value, traceback)

    def close(self, space: Space) -> Value:
        return self.coroutine.close(space)

    def rebuilt(self, writer: Writer) -> str:
        return writer.assign("awaited", f"{writer.expr(self.coroutine)}.__await__()")


def send(space: Space, receiver: Value, value: Value) -> Value:
    """One step of a `yield from` receiver: send, or next where None is sent to an iterator without `send`."""
    receiver = receiver.force()
    if isinstance(receiver, GeneratorValue):
        return receiver.send(space, value)
    if value.is_none():
        return space.advance(receiver)
    return space.call_method(receiver, "send", value)


def make(frame: Frame) -> Value:
    """The generator or coroutine that calling such a function gives."""
    flags = frame.code.co_flags
    if flags & inspect.CO_ASYNC_GENERATOR:
        return model_for(types.AsyncGeneratorType)(frame)  # type: ignore[call-arg]
    if not flags & inspect.CO_COROUTINE:
        return GeneratorValue(frame)
    _refuse_origins(frame.space)
    return GeneratorValue(frame, types.CoroutineType)


def _is_awaitable(value: Value) -> bool:
    return isinstance(value, GeneratorValue) and value.is_awaitable


def awaitable(space: Space, value: Value) -> Value:
    """`_PyCoro_GetAwaitableIter`: the iterator behind an awaitable."""
    value = value.force()
    if _is_awaitable(value):
        return value
    words = (
        "'%T' object can't be awaited"
        if AWAITING_NAMES_THE_TYPE_FIRST
        else "object %T can't be used in 'await' expression"
    )
    iterator = call_slot(space, value, "__await__", words)
    if _is_awaitable(iterator):
        raise space.error(TypeError, "__await__() returned a coroutine")
    if space.special(iterator, "__next__") is None:
        raise space.error(TypeError, f"__await__() returned non-iterator of type '{iterator.type_name(space)}'")
    return iterator


#: what `async with` awaits: GET_AWAITABLE's argument → the method that gave it
_GIVEN_BY = {1: "__aenter__", 2: "__aexit__"}


def awaited(space: Space, value: Value, where: int) -> Value:
    """`await value`."""
    value = value.force()
    if where and not _is_awaitable(value) and space.special(value, "__await__") is None:
        given = f"'async with' received an object from {_GIVEN_BY[where]} that does not implement __await__"
        raise space.error(TypeError, f"{given}: {value.type_name(space)}")
    iterator = awaitable(space, value)
    if isinstance(iterator, GeneratorValue) and iterator.is_coroutine:
        iterator.own()
        if iterator.delegate() is not None:
            raise space.error(RuntimeError, "coroutine is being awaited already")
    return iterator


def aiter_(space: Space, value: Value) -> Value:
    """`async for … in value`: its async iterator."""
    value = value.force()
    text = "'async for' requires an object with __aiter__ method, got %T"
    iterator = call_slot(space, value, "__aiter__", text)
    if space.special(iterator, "__anext__") is None:
        text = "'async for' received an object from __aiter__ that does not implement __anext__"
        raise space.error(TypeError, f"{text}: {iterator.type_name(space)}")
    return iterator


def anext_(space: Space, iterator: Value) -> Value:
    """The awaitable of `iterator.__anext__()`."""
    iterator = iterator.force()
    text = "'async for' requires an iterator with __anext__ method, got %T"
    given = call_slot(space, iterator, "__anext__", text)
    try:
        return awaitable(space, given)
    except Raised as e:
        text = f"'async for' received an invalid object from __anext__: {given.type_name(space)}"
        raise Raised(exception.from_cause(space, space.error(TypeError, text).value, e.value)) from None
