"""Suspended frames: what generators, coroutines and async generators have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import NoneType, TracebackType

from stator import errors
from stator.bytecode.decode import Instr
from stator.guards.source import Source
from stator.host.version_facts import BODIES_CONVERT_STOP_ITERATION, NONE_STOPS_LIKE_ANY_VALUE, THROW_WARNS_OF_PARTS
from stator.models.exceptions import exception
from stator.models.functions.frame_ import Frames
from stator.space.facts import plain_name
from stator.space.host_types import Host
from stator.space.interfaces import Frame, Writer
from stator.space.operands import bool_value
from stator.space.protocol import NONE
from stator.space.space import Space
from stator.space.value import Constant, ObjectValue, Raised, Unsupported, Value


def fields_of(prefix: str, delegate: str) -> dict[str, Callable[[Suspendable, Space], Value | None]]:
    """The C-level attributes of a kind of suspended frames; `delegate` says what it waits for."""
    return {
        "__name__": lambda self, space: self.name_of(space, "__name__"),
        "__qualname__": lambda self, space: self.name_of(space, "__qualname__"),
        f"{prefix}_running": lambda self, space: bool_value(self.is_running),
        f"{prefix}_suspended": lambda self, space: bool_value(bool(self.frame) and self.started and not self.running),
        f"{prefix}_frame": lambda self, space: self.frame_value(space),
        f"{prefix}_{delegate}": lambda self, space: self.delegate() or NONE,
        f"{prefix}_code": lambda self, space: Constant(self.code),
    }


class Suspendable(ObjectValue):
    """A frame, which runs whenever something is sent; None once it is finished."""

    __slots__ = ("code", "frame", "names", "protected", "running", "started")
    #: what error messages call it
    kind: str

    def __init__(self, frame: Frame | None, cls: type) -> None:
        super().__init__(cls)
        self.frame = frame
        if frame is not None:
            frame.generator = self
            self.code = frame.code
        #: `__name__` and `__qualname__`, once it is finished
        self.names: tuple[Value, Value] | None = None
        self.started = False
        self.running = False
        #: whether it is among the trace's unfinished ones
        self.protected = False

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        self = cls(None, space.guard_type(host, source))
        self.host, self.source = host, source
        return self

    def __del__(self) -> None:
        # The tracer holds it no longer than the program: the program's would be closed now.
        frame = self.frame
        if frame is not None and self.source is None and not self.running and self.is_finalised(frame):
            frame.trace.finalizers.close_later(self)

    def held(self) -> Iterable[Value]:
        frame = self.frame
        return () if frame is None else [*frame.locals.values(), *frame.stack, *frame.cells.values()]

    def is_finalised(self, frame: Frame) -> bool:
        """Whether its end, when the program has let go of it, does something that the program may see."""
        return self.started and is_protected(frame)

    def tp_del(self, space: Space) -> Value:
        """`_PyGen_Finalize`."""
        raise NotImplementedError

    def own(self) -> None:
        """Break where it existed before the trace."""
        if self.source is not None:
            raise Unsupported(errors.OutsideGenerator(plain_name(self.host)))

    def first_step(self, writer: Writer, name: str) -> str:
        """The statement that brings a continuation of this name to where the frame is suspended."""
        raise NotImplementedError

    def finish(self, space: Space) -> None:
        """It has come to its end, and lets go of its frame."""
        space.mark_mutated(self)
        self.names = self.name_of(space, "__name__"), self.name_of(space, "__qualname__")
        self.frame = None

    def name_of(self, space: Space, field: str) -> Value:
        """`__name__` or `__qualname__`: those of its function."""
        if self.names is not None:
            return self.names[field == "__qualname__"]
        assert self.frame is not None
        function = self.frame.function
        return space.getattr(function, field)

    def get_field(self, space: Space, name: str) -> Value | None:
        return None if self.source is not None else super().get_field(space, name)

    @property
    def is_running(self) -> bool:
        """What `gi_running` and its like show."""
        return self.running

    def frame_value(self, space: Space) -> Value:
        """Its frame as an object of the program's."""
        return NONE if self.frame is None else space.trace.extension(Frames).value(self.frame)

    # -- resuming ---------------------------------------------------------------------------------------------------

    def exhausted(self, space: Space) -> Raised:
        """What is raised where something is sent after the end."""
        raise NotImplementedError

    def ended(self, space: Space, result: Value) -> Raised:
        """What is raised where the body returns."""
        raise NotImplementedError

    def resume(self, space: Space, value: Value) -> Value:
        """`gen_send_ex`: run to the next yield with that as the result of the last one."""
        self.own()
        if self.frame is None:
            raise self.exhausted(space)
        if not self.started and not self.running and not value.is_none():
            raise space.error(TypeError, f"can't send non-None value to a just-started {self.kind}")
        frame = self._enter(space)
        if self.started:
            frame.push(value)
        self.started = True
        return self._run(space, frame, None)

    def thrown_late(self, space: Space, raised: Raised) -> Raised:
        """What is raised where that is thrown in after the end."""
        return raised

    def throw_in(self, space: Space, raised: Raised, closing: bool = True) -> Value:
        """`_gen_throw`; `closing`: on GeneratorExit, what is delegated to is closed."""
        if self.frame is None:
            raise self.thrown_late(space, raised)
        receiver = self.delegate()
        if receiver is not None:
            return self._throw_into_delegate(space, receiver, raised, closing)
        frame = self._enter(space)
        if not self.started:
            frame.index = next(i.index for i in frame.instrs if i.op == "RETURN_GENERATOR") + 1
            self.started = True
        return self._run(space, frame, raised)

    def delegate(self) -> Value | None:
        """What `yield from` or `await` is waiting for, if that is where the frame is suspended."""
        frame = self.frame
        if frame is None or not self.started or frame.index < 2 or self.running:
            return None
        waiting = frame.instrs[frame.index - 1].op == "YIELD_VALUE" and frame.instrs[frame.index - 2].op == "SEND"
        return frame.stack[-1] if waiting else None

    def _enter(self, space: Space) -> Frame:
        if self.running:
            raise space.error(ValueError, f"{self.kind} already executing")
        space.mark_mutated(self)
        frame = self.frame
        assert frame is not None
        if self.protected:
            self.protected = False
            space.trace.finalizers.suspended_in_finally.discard(self)
        frame.parent = space.trace.frame
        frame.result = None
        frame.handling.resume(frame.parent)
        self.running = True
        return frame

    def _run(self, space: Space, frame: Frame, raised: Raised | None) -> Value:
        """Run to the next yield; raises StopIteration at the end."""
        try:
            space.trace.calls.enter(frame)
            if raised is not None:
                if frame.handling.infos:
                    exception.set_context(space, raised.value, frame.handling.current)
                frame.unwind(raised, frame.instrs[max(frame.index - 1, 0)])
            result = frame.run()
        except Raised as e:
            self.finish(space)
            if not BODIES_CONVERT_STOP_ITERATION:
                raise Raised(exception.stop_iteration_error(space, e.value, frame.code)) from None
            raise
        finally:
            self.running = False
            space.trace.calls.leave()
        if frame.instrs[frame.index - 1].op == "YIELD_VALUE":
            frame.parent = None
            if is_protected(frame):
                self.protected = True
                space.trace.finalizers.suspended_in_finally.add(self)
            return result
        self.finish(space)
        raise self.ended(space, result)

    def _throw_into_delegate(self, space: Space, receiver: Value, raised: Raised, closing: bool) -> Value:
        frame = self._enter(space)
        receiver = receiver.force()
        try:
            if closing and raised.matches(GeneratorExit):
                close(space, receiver)
                return self._run(space, frame, raised)
            thrower = space.getattr_or_none(receiver, "throw")
            if thrower is None:
                return self._run(space, frame, raised)
            result = self._call_delegate(space, frame, thrower, raised.value)
        except Raised as inner:
            if self.frame is None:
                raise
            if not inner.matches(StopIteration):
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
        space.trace.calls.enter(frame)
        space.trace.frame = frame
        try:
            return space.call(thrower, [exc], {})
        finally:
            space.trace.frame = frame.parent
            space.trace.calls.leave()


class AwaitableIterator(ObjectValue):
    """The iterator behind something that `await` takes; nothing is known of one that existed before the trace."""

    __slots__ = ()

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        raise Unsupported(errors.OutsideGenerator(space.guard_type(host, source).__name__))

    def tp_await(self, space: Space) -> Value:
        return self

    def tp_iter(self, space: Space) -> Value:
        return self

    def tp_next(self, space: Space) -> Value:
        return self.send(space, NONE)

    def send(self, space: Space, value: Value, /) -> Value:
        raise NotImplementedError


def thrown(space: Space, kind: Value, value: Value | None, traceback: Value | None) -> Raised:
    """What `throw(kind, value, traceback)` throws in."""
    given = NoneType if traceback is None else traceback.force().cls
    if given not in (NoneType, TracebackType):
        raise space.error(TypeError, "throw() third argument must be a traceback object")
    # In no variable: where making it has failed, its own traceback leads back to this frame.
    return _with(space, _made(space, kind, value), None if given is NoneType else traceback)


def _made(space: Space, kind: Value, value: Value | None) -> Raised:
    """The exception of `throw(kind, value)`: where making it fails, what that raised."""
    try:
        return Raised(exception.from_throw(space, kind, value))
    except Raised as e:
        if not exception.is_exception_class(kind.force()):
            raise
        return e


def _with(space: Space, raised: Raised, traceback: Value | None) -> Raised:
    if traceback is not None:
        raised.value.with_traceback(space, traceback)  # type: ignore[attr-defined]
    return raised


def is_protected(frame: Frame) -> bool:
    """Whether closing the suspended generator runs code of the program's: a handler, a `finally`, an `__exit__`."""
    return protects(frame.instrs, frame.instrs[frame.index - 1])


def protects(instrs: Sequence[Instr], suspended_at: Instr) -> bool:
    handler = suspended_at.handler
    return handler is not None and instrs[handler.target].op != "STOPITERATION_ERROR"


def stop_with(space: Space, value: Value) -> Raised:
    """`_PyGen_SetStopIterationValue`: the StopIteration that brings a value."""
    stop = space.error(StopIteration)
    if NONE_STOPS_LIKE_ANY_VALUE or not value.is_none():
        stop.value.set_args(space, [value])  # type: ignore[attr-defined]
    return stop


def warn_of_parts(space: Space, method: str, value: Value | None) -> None:
    """Exceptions are not to be thrown in as type, value and traceback."""
    if value is not None and THROW_WARNS_OF_PARTS:
        text = f"the (type, exc, tb) signature of {method}() is deprecated, use the single-arg signature instead."
        space.warn(DeprecationWarning, text)


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
