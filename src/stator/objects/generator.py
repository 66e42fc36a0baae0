"""Generators and coroutines: suspended frames."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.bytecode.decode import decode
from stator.objects.frame_ import Frames
from stator.objects.protocol import NONE, models
from stator.objects.value import Constant, ObjectValue, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.bytecode.decode import Instr
    from stator.guards.source import Source
    from stator.interp.frame import Frame
    from stator.objects.space import Space
    from stator.residual.writer import Writer


_THROWN_IN_PARTS = "the (type, exc, tb) signature of throw() is deprecated, use the single-arg signature instead."


@models(types.GeneratorType, types.CoroutineType)
class GeneratorValue(ObjectValue):
    """A generator or coroutine: its frame, which runs whenever something is sent; None once it is finished."""

    __slots__ = ("frame", "protected", "running", "started")
    FIELDS = frozenset({"__name__", "__qualname__", "gi_code", "gi_running", "gi_suspended", "gi_yieldfrom"})
    FIELDS |= frozenset({"cr_code", "cr_running", "cr_suspended", "cr_await"})

    def __init__(self, frame: Frame | None, cls: type = types.GeneratorType) -> None:
        self.cls = cls
        self.source: Source | None = None
        self.host: Any = None
        self.frame = frame
        if frame is not None:
            frame.generator = self
        self.started = False
        self.running = False
        #: whether it is among the trace's unfinished ones
        self.protected = False

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> GeneratorValue:
        self = cls(None, type(host))
        self.host = host
        self.source = source
        space.guard_type(host, source)
        return self

    def __del__(self) -> None:
        # The tracer holds it no longer than the program: the program's would be closed now.
        frame = self.frame
        if frame is not None and self.started and not self.running and _is_protected(frame):
            frame.trace.lose(self)

    @property
    def is_coroutine(self) -> bool:
        return self.cls is types.CoroutineType

    @property
    def kind(self) -> str:
        return "coroutine" if self.is_coroutine else "generator"

    def _own(self) -> None:
        if self.source is not None:
            raise Unsupported(errors.OutsideGenerator(self.host.__qualname__))

    # -- resuming ---------------------------------------------------------------------------------------------------

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
        return self

    def send(self, space: Space, value: Value) -> Value:
        """`generator.send(value)`; the end is a StopIteration raised."""
        self._own()
        if self.frame is not None and not self.started and not self.running and not space.trace.is_none(value):
            raise space.error(TypeError, f"can't send non-None value to a just-started {self.kind}")
        if self.frame is None and self.is_coroutine:
            raise space.error(RuntimeError, "cannot reuse already awaited coroutine")
        if self.frame is None:
            raise space.error(StopIteration)
        frame = self._enter(space)
        if self.started:
            frame.push(value)
        self.started = True
        return self._run(space, frame, None)

    def throw(self, space: Space, kind: Value, value: Value | None = None, traceback: Value | None = None) -> Value:
        """`generator.throw(exception)`."""
        from stator.objects import exception

        self._own()
        if value is not None and sys.version_info >= (3, 12):
            space.warn(DeprecationWarning, _THROWN_IN_PARTS)
        try:
            raised = Raised(exception.from_throw(space, kind, value))
        except Raised as e:
            if not exception.is_exception_class(kind.force()):
                raise
            raised = e  # making the exception has failed: what that raised is thrown in instead
        try:
            return self._throw(space, raised)
        finally:
            del raised  # its traceback leads to this frame

    def _throw(self, space: Space, raised: Raised) -> Value:
        if self.frame is None:
            raise raised
        receiver = self._delegate()
        if receiver is not None:
            return self._throw_into_delegate(space, receiver, raised)
        frame = self._enter(space)
        if not self.started:
            frame.index = next(i.index for i in frame.instrs if i.op == "RETURN_GENERATOR") + 1
            self.started = True
        return self._run(space, frame, raised)

    def _delegate(self) -> Value | None:
        """What `yield from` or `await` is waiting for, if that is where the frame is suspended."""
        frame = self.frame
        if frame is None or not self.started or frame.index < 2 or self.running:
            return None
        waiting = frame.instrs[frame.index - 1].op == "YIELD_VALUE" and frame.instrs[frame.index - 2].op == "SEND"
        return frame.stack[-1] if waiting else None

    def _throw_into_delegate(self, space: Space, receiver: Value, raised: Raised) -> Value:
        frame = self._enter(space)
        receiver = receiver.force()
        try:
            if issubclass(raised.value.cls, GeneratorExit):
                close(space, receiver)
                return self._run(space, frame, raised)
            thrower = space.getattr_or_none(receiver, "throw")
            if thrower is None:
                return self._run(space, frame, raised)
            result = self._call_delegate(space, frame, thrower, raised.value)
        except Raised as inner:
            if self.frame is None:
                raise
            if not issubclass(inner.value.cls, StopIteration):
                return self._run(space, frame, inner)
            frame.pop()
            frame.push(stop_value(space, inner.value))
            frame.index = frame.instrs[frame.index - 2].arg
            return self._run(space, frame, None)
        self.running = False
        return result

    @staticmethod
    def _call_delegate(space: Space, frame: Frame, thrower: Value, exc: Value) -> Value:
        """The call is made by the frame that waits for the delegate."""
        space.trace.enter_frame(frame)
        space.trace.frame = frame
        try:
            return space.call(thrower, [exc], {})
        finally:
            space.trace.frame = frame.parent
            space.trace.leave_frame(frame)

    def close(self, space: Space) -> Value:
        """`generator.close()`."""
        self._own()
        if self.frame is None:
            return NONE
        if not self.started:
            space.touch(self)
            self.frame = None
            return NONE
        try:
            self._throw(space, space.error(GeneratorExit))
        except Raised as e:
            if issubclass(e.value.cls, StopIteration) and sys.version_info >= (3, 13):
                return space.getattr(e.value, "value")
            if issubclass(e.value.cls, (GeneratorExit, StopIteration)):
                return NONE
            raise
        raise space.error(RuntimeError, f"{self.kind} ignored GeneratorExit")

    def tp_del(self, space: Space) -> Value:
        """`_PyGen_Finalize`: a close whose errors go to the hook for them."""
        self._own()
        if self.frame is None:
            return NONE
        if self.is_coroutine and not self.started:
            raise Unsupported(errors.UnsupportedMethod("coroutine", "__del__"))  # warns that nothing has awaited it
        try:
            self.close(space)
        except Raised:
            raise Unsupported(errors.UnsupportedMethod(self.kind, "__del__")) from None
        return NONE

    def _enter(self, space: Space) -> Frame:
        if self.running:
            raise space.error(ValueError, f"{self.kind} already executing")
        space.touch(self)
        frame = self.frame
        assert frame is not None
        if self.protected:
            self.protected = False
            space.trace.unfinished.discard(self)
        frame.parent = space.trace.frame
        frame.result = None
        if not frame.handlers:
            frame.handled = frame.handled_outside()
        self.running = True
        return frame

    def _run(self, space: Space, frame: Frame, raised: Raised | None) -> Value:
        """Run to the next yield; raises StopIteration at the end."""
        try:
            space.trace.enter_frame(frame)
            if raised is not None:
                from stator.objects import exception

                if frame.handlers:
                    exception.set_context(space, raised.value, frame.handled)
                frame.unwind(raised, frame.instrs[max(frame.index - 1, 0)])
            result = frame.run()
        except Raised as e:
            self.frame = None
            if sys.version_info < (3, 12) and issubclass(e.value.cls, StopIteration):
                raise Raised(_runtime_error(space, self.kind, e.value)) from None  # later, the body's own code does
            raise
        finally:
            self.running = False
            space.trace.leave_frame(frame)
        if frame.instrs[frame.index - 1].op == "YIELD_VALUE":
            frame.parent = None
            if _is_protected(frame):
                self.protected = True
                space.trace.unfinished.add(self)
            return result
        self.frame = None
        if space.trace.is_none(result):
            raise space.error(StopIteration)
        stop = space.error(StopIteration)
        stop.value.set_args(space, [result])  # type: ignore[attr-defined]
        raise stop

    # -- attributes and the rest ------------------------------------------------------------------------------------

    def get_field(self, space: Space, name: str) -> Value | None:
        if self.source is not None:
            return None
        if name in ("gi_running", "cr_running"):
            return Constant(self.running)
        if name in ("gi_suspended", "cr_suspended"):
            return Constant(self.frame is not None and self.started and not self.running)
        if name in ("gi_frame", "cr_frame"):
            return NONE if self.frame is None else space.trace.extension(Frames).value(self.frame)
        if name in ("gi_yieldfrom", "cr_await"):
            return self._delegate() or NONE
        if self.frame is not None and name in ("gi_code", "cr_code"):
            return Constant(self.frame.code)
        if self.frame is not None and name in ("__name__", "__qualname__"):
            return self.frame.function.get_field(space, name) or Constant(getattr(self.frame.function.host, name))
        return None

    def describe(self) -> str:
        return f"a {self.kind}"

    def reconstruct(self, writer: Writer) -> str:
        if self.frame is None and self.source is None and self.is_coroutine:
            raise Unsupported(errors.NotReconstructible("a finished coroutine"))
        if self.source is not None:
            return writer.source(self.source)
        return writer.generator(self)


def _is_protected(frame: Frame) -> bool:
    """Whether closing the suspended generator runs code of the program's: a handler, a `finally`, an `__exit__`."""
    return _protects(frame.instrs, frame.instrs[frame.index - 1])


def _protects(instrs: Sequence[Instr], suspended_at: Instr) -> bool:
    handler = suspended_at.handler
    return handler is not None and instrs[handler.target].op != "STOPITERATION_ERROR"


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
    return at is None or _protects(instrs, at)


def send(space: Space, receiver: Value, value: Value) -> Value:
    """One step of a `yield from` receiver: send, or next where None is sent to an iterator without `send`."""
    receiver = receiver.force()
    if isinstance(receiver, GeneratorValue):
        return receiver.send(space, value)
    if space.trace.is_none(value):
        return space.advance(receiver)
    return space.call_method(receiver, "send", value)


def stop_value(space: Space, stop: Value) -> Value:
    """The `value` of a StopIteration."""
    return space.getattr(stop, "value")


def close(space: Space, receiver: Value) -> None:
    """Close what is being delegated to, if it can be closed."""
    try:
        closer = space.getattr_or_none(receiver, "close")
    except Raised:
        raise Unsupported(errors.UnsupportedMethod(receiver.cls.__name__, "close")) from None  # goes to unraisablehook
    if closer is not None:
        space.call(closer, [], {})


def _runtime_error(space: Space, kind: str, cause: Value) -> Value:
    from stator.objects import exception

    error = space.error(RuntimeError, f"{kind} raised StopIteration").value
    exception.set_cause(space, error, cause)
    exception.set_context(space, error, cause)
    return error


def make(frame: Frame) -> Value:
    """The generator or coroutine that calling such a function gives."""
    flags = frame.code.co_flags
    if flags & inspect.CO_ASYNC_GENERATOR:
        refuse_async(frame.code)
    return GeneratorValue(frame, types.CoroutineType if flags & inspect.CO_COROUTINE else types.GeneratorType)


def refuse_async(code: types.CodeType) -> None:
    """Async generators need their event loop's hooks."""
    raise Unsupported(errors.SuspendedCoroutine(code.co_qualname))


def awaitable(space: Space, value: Value, where: int) -> Value:
    """`_PyCoro_GetAwaitableIter`: the iterator behind an awaitable."""
    value = value.force()
    if isinstance(value, GeneratorValue) and value.is_coroutine:
        if value._delegate() is not None:
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
