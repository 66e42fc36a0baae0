"""Generators and coroutines: suspended frames."""

from __future__ import annotations

import inspect
import sys
import types
import warnings
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.bytecode.decode import decode
from stator.guards.guard import Equals
from stator.guards.source import CallSource, ConstSource
from stator.objects.frame_ import Frames
from stator.objects.protocol import MODELS, NONE, models
from stator.objects.suspendable import Suspendable, protects, stop_with, thrown, warn_of_parts
from stator.objects.value import Constant, ObjectValue, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.interp.frame import Frame
    from stator.objects.space import Space
    from stator.residual.writer import Writer


_warn_unawaited: Any = warnings._warn_unawaited_coroutine  # type: ignore[attr-defined]


def _depth(_: Any) -> int:
    return sys.get_coroutine_origin_tracking_depth()


def _origin(space: Space) -> Value:
    """Where new coroutines were made: nowhere, unless the interpreter is told to keep track of it."""
    depth = CallSource(_depth, ConstSource(sys, "sys"), "coroutine_origin_tracking_depth")
    if _depth(None):
        raise Unsupported(errors.UnsupportedMethod("coroutine", "cr_origin"))
    space.trace.guard(Equals(depth, 0))
    return NONE


@models(types.GeneratorType, types.CoroutineType)
class GeneratorValue(Suspendable):
    """A generator or coroutine."""

    __slots__ = ()
    FIELDS = frozenset({"__name__", "__qualname__", "gi_code", "gi_running", "gi_suspended", "gi_yieldfrom"})
    FIELDS |= frozenset({"cr_code", "cr_running", "cr_suspended", "cr_await", "cr_origin"})

    def __init__(self, frame: Frame | None, cls: type = types.GeneratorType) -> None:
        super().__init__(frame, cls)
        if frame is not None and self.is_coroutine:
            self.protected = True
            frame.trace.unfinished.add(self)

    @property
    def is_coroutine(self) -> bool:
        return self.cls is types.CoroutineType

    @property
    def kind(self) -> str:  # type: ignore[override]
        return "coroutine" if self.is_coroutine else "generator"

    # -- resuming ---------------------------------------------------------------------------------------------------

    def exhausted(self, space: Space) -> Raised:
        if self.is_coroutine:
            return space.error(RuntimeError, "cannot reuse already awaited coroutine")
        return space.error(StopIteration)

    def ended(self, space: Space, result: Value) -> Raised:
        return stop_with(space, result)

    def next_value(self, space: Space) -> Value | None:
        try:
            return self.send(space, NONE)
        except Raised as e:
            if issubclass(e.value.cls, StopIteration) and not self.is_coroutine:
                space.stopped_by(e.value)
                return None
            raise

    def __next__(self, space: Space) -> Value:
        return self.send(space, NONE)

    def __iter__(self, space: Space) -> Value:
        return self

    def __await__(self, space: Space) -> Value:
        return CoroutineWrapper(self)

    def send(self, space: Space, value: Value) -> Value:
        """`generator.send(value)`; the end is a StopIteration raised."""
        return self.resume(space, value)

    def throw(self, space: Space, kind: Value, value: Value | None = None, traceback: Value | None = None) -> Value:
        """`generator.throw(exception)`."""
        self.own()
        warn_of_parts(space, "throw", value)
        return self.throw_in(space, thrown(space, kind, value))

    def close(self, space: Space) -> Value:
        """`generator.close()`."""
        self.own()
        if self.frame is None:
            return NONE
        if not self.started:
            space.touch(self)
            self.unused, self.frame = self.frame, None
            return NONE
        try:
            self.throw_in(space, space.error(GeneratorExit))
        except Raised as e:
            if issubclass(e.value.cls, StopIteration) and sys.version_info >= (3, 13):
                return space.getattr(e.value, "value")
            if issubclass(e.value.cls, (GeneratorExit, StopIteration)):
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
                space.call(space.existing(_warn_unawaited), [self], {})
            self.close(space)
        except Raised:
            raise Unsupported(errors.UnsupportedMethod(self.kind, "__del__")) from None
        return NONE

    def is_finalised(self, frame: Frame) -> bool:
        return (self.is_coroutine and not self.started) or super().is_finalised(frame)

    # -- attributes and the rest ------------------------------------------------------------------------------------

    def get_field(self, space: Space, name: str) -> Value | None:
        if self.source is not None:
            return None
        if name == "cr_origin":
            return _origin(space)
        if name in ("gi_running", "cr_running"):
            return Constant(self.running)
        if name in ("gi_suspended", "cr_suspended"):
            return Constant(self.frame is not None and self.started and not self.running)
        if name in ("gi_frame", "cr_frame"):
            return NONE if self.frame is None else space.trace.extension(Frames).value(self.frame)
        if name in ("gi_yieldfrom", "cr_await"):
            return self.delegate() or NONE
        if self.frame is not None and name in ("gi_code", "cr_code"):
            return Constant(self.frame.code)
        if self.frame is not None and name in ("__name__", "__qualname__"):
            return self.frame.function.get_field(space, name) or Constant(getattr(self.frame.function.host, name))
        return None

    def describe(self) -> str:
        return f"a {self.kind}"

    def first_step(self, writer: Writer, name: str) -> str:
        return f"{name}.send(None)" if self.is_coroutine else f"next({name})"

    def reconstruct(self, writer: Writer) -> str:
        if self.frame is None and self.source is None and self.is_coroutine and self.unused is None:
            raise Unsupported(errors.NotReconstructible("a finished coroutine"))
        if self.source is not None:
            return writer.source(self.source)
        return writer.generator(self)


async def _nothing() -> None: ...


_probe = _nothing()
_WRAPPER: Any = type(_probe.__await__())
_probe.close()


@models(_WRAPPER)
class CoroutineWrapper(ObjectValue):
    """`coroutine.__await__()`: its iterator."""

    __slots__ = ("coroutine",)

    def __init__(self, coroutine: GeneratorValue) -> None:
        self.cls = _WRAPPER
        self.source: Source | None = None
        self.host: Any = None
        self.coroutine = coroutine

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> Value:
        raise Unsupported(errors.OutsideGenerator(type(host).__name__))

    def __iter__(self, space: Space) -> Value:
        return self

    def __next__(self, space: Space) -> Value:
        return self.coroutine.send(space, NONE)

    def send(self, space: Space, value: Value, /) -> Value:
        return self.coroutine.send(space, value)

    def throw(self, space: Space, kind: Value, value: Value | None = None, traceback: Value | None = None, /) -> Value:
        return self.coroutine.throw(space, kind, value, traceback)

    def close(self, space: Space) -> Value:
        return self.coroutine.close(space)

    def reconstruct(self, writer: Writer) -> str:
        return writer.assign("awaited", f"{writer.expr(self.coroutine)}.__await__()")


def is_left_open(host: Any) -> bool:
    """Whether letting go of the object closes a generator suspended in such a place; a tuple holds its items."""
    waiting, met = [host], set()
    while waiting:
        found = waiting.pop()
        if type(found) is tuple and id(found) not in met:
            met.add(id(found))
            waiting += found
        elif type(found) is types.GeneratorType and found.gi_suspended and _is_open(found):
            return True
    return False


def _is_open(host: types.GeneratorType[Any, Any, Any]) -> bool:
    instrs, frame = decode(host.gi_code).instrs, host.gi_frame
    at = None if frame is None else next((instr for instr in instrs if instr.offset == frame.f_lasti), None)
    return at is None or protects(instrs, at)


def send(space: Space, receiver: Value, value: Value) -> Value:
    """One step of a `yield from` receiver: send, or next where None is sent to an iterator without `send`."""
    receiver = receiver.force()
    if isinstance(receiver, GeneratorValue):
        return receiver.send(space, value)
    if space.trace.is_none(value):
        return space.advance(receiver)
    return space.call_method(receiver, "send", value)


def make(frame: Frame) -> Value:
    """The generator or coroutine that calling such a function gives."""
    flags = frame.code.co_flags
    if flags & inspect.CO_ASYNC_GENERATOR:
        return MODELS[types.AsyncGeneratorType](frame)  # type: ignore[call-arg]
    return GeneratorValue(frame, types.CoroutineType if flags & inspect.CO_COROUTINE else types.GeneratorType)


def awaitable(space: Space, value: Value, where: int) -> Value:
    """`_PyCoro_GetAwaitableIter`: the iterator behind an awaitable."""
    value = value.force()
    if isinstance(value, GeneratorValue) and value.is_coroutine:
        if value.delegate() is not None:
            raise space.error(RuntimeError, "coroutine is being awaited already")
        return value
    slot = space.special(value, "__await__")
    if slot is None:
        name = value.type_name
        text = {
            1: f"'async with' received an object from __aenter__ that does not implement __await__: {name}",
            2: f"'async with' received an object from __aexit__ that does not implement __await__: {name}",
        }.get(where, f"object {name} can't be used in 'await' expression")
        raise space.error(TypeError, text)
    return space.call(slot, [value], {})


def aiter_(space: Space, value: Value) -> Value:
    """`value.__aiter__()`."""
    value = value.force()
    slot = space.special(value, "__aiter__")
    if slot is None:
        raise space.error(TypeError, f"'async for' requires an object with __aiter__ method, got {value.type_name}")
    return space.call(slot, [value], {})


def anext_(space: Space, iterator: Value) -> Value:
    """The awaitable of `iterator.__anext__()`."""
    iterator = iterator.force()
    slot = space.special(iterator, "__anext__")
    if slot is None:
        name = iterator.type_name
        raise space.error(TypeError, f"'async for' requires an iterator with __anext__ method, got {name}")
    return awaitable(space, space.call(slot, [iterator], {}), 0)
