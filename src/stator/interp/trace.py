"""One trace: everything that is known about one symbolic execution of one frame. Nothing here is global."""

from __future__ import annotations

import sys
import traceback
import weakref
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

from stator import errors
from stator._core import calls_left
from stator.bytecode import argument_count, is_suspendable
from stator.bytecode.continuation import enterable
from stator.guards.base import Guard
from stator.guards.source import (
    CellSource,
    ConstSource,
    FunctionSource,
    GetAttrSource,
    ItemSource,
    LocalSource,
    asked,
)
from stator.interp.frame import Frame
from stator.interp.opcode_helpers import OpcodeHelpers
from stator.interp.policy import GIVEN_UP
from stator.interp.side_effects import Effects
from stator.models.functions import generator
from stator.models.functions.function import FunctionValue
from stator.models.functions.module import ModuleValue
from stator.models.standard_space import StandardSpace
from stator.space.globals_ import MadeGlobals, NamedItems
from stator.space.identity.reachability import reaches, stands_for
from stator.space.protocol import is_immutable
from stator.space.signals import NearRecursionLimit, Restart
from stator.space.skeleton import detach
from stator.space.value import Constant, Lazy, NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.config import Config
    from stator.guards.source import Source
    from stator.models.functions.function import FunctionValue
    from stator.space import interfaces

T = TypeVar("T")
Intercept = Callable[[Any], Any]

#: asked before a Python function is inlined: host function → model (as in protocol.HANDLERS), or None to inline it
INTERCEPTS: list[Intercept] = []
#: asked for each literal read from the frame: (trace, host, source) → Value, or None for an ordinary constant
LITERAL_HOOKS: list[Callable[[Any, Any, Any], Value | None]] = []
#: asked to decide a symbolic number or truth value: (trace, value) → host value, or None
DECIDERS: list[Callable[[Any, Value], Any]] = []
#: asked where a branch cannot be decided: (frame, value, where it goes when true, when false) → the truth, or None
BRANCH_HOOKS: list[Callable[[Any, Value, int, int], bool | None]] = []
#: called when a trace begins; the higher layers hang their parts on it
TRACE_HOOKS: list[Callable[[Any], None]] = []

#: items that one trace may take out of iterators
_MOST_ITEMS = 1_000_000
#: how many such items a guard is worth, by the time that it takes to make, compile and check, and the memory
_GUARD_COST = 10
#: instructions before which a break cannot be placed: a frame's prologue, and the finishing of a function (3.13)
_PROLOGUE = frozenset({"MAKE_CELL", "COPY_FREE_VARS", "RETURN_GENERATOR", "SET_FUNCTION_ATTRIBUTE"})


#: the exception that the callers of the frame being traced are handling
_HANDLED = asked(sys.exception, "sys.exception")


class Trace(OpcodeHelpers):
    """The state of one symbolic execution.

    Args:
        config: the settings in force.
        region_state: what earlier traces of the same code in the same region left for this one (dynamic dimensions …).
        stop_at: the step before which the trace must end, with the reason `stop_reason`.
    """

    #: the StopIteration by which the iterator asked last has ended, where another iterator wants to pass it on
    ended_by: Value | None = None
    end_wanted = False
    #: what the program has made weak references to that call back: as long as they are there themselves
    calls_back: tuple[Any, ...] = ()
    #: where the trace was too long: the code of the inlined calls that will not be traced by themselves either
    overlong: tuple[CodeType, ...] = ()
    #: how host functions are called, `compute(function, *args, **kwargs)`, where it depends on the traced program
    compute: Callable[..., Any] | None = None

    def __init__(
        self,
        config: Config,
        *,
        region_state: dict[Any, Any] | None = None,
        dynamic: bool | None = None,
        stop_at: int = 0,
        stop_reason: Any = None,
    ) -> None:
        self.config = config
        self.dynamic = dynamic
        self.region_state = region_state if region_state is not None else {}
        self.guards: dict[tuple[object, ...], Guard] = {}
        self.effects = Effects()
        self.done_first = set()
        #: generators that are suspended where closing them runs code of the program's
        self.unfinished: weakref.WeakSet[Any] = weakref.WeakSet()
        self.lost: list[Any] = []
        #: what is called before the guards of the entry are checked: the collection that the program calls for
        self.prologue: Callable[[], object] | None = None
        self.mutation_count = 0
        self.steps = 0
        self.depth = 0
        self.deepest = 0
        self.calls_left = calls_left()
        self.items = 0
        self.recursion_limit = sys.getrecursionlimit()
        self.stop_at = stop_at
        self.stop_reason = stop_reason
        self.next_stop = stop_at or config.trace_step_limit
        self.frame: Any = None
        self.recorder: Any = None
        #: fresh objects that stand for existing ones: id → the object, the step that made it, the function's name
        self.shared: dict[int, tuple[Value, int, str]] = {}
        self.class_overlays: dict[type, dict[str, Value]] = {}
        self.fresh_classes: dict[type, Value] = {}
        #: abstract base classes with the classes that the program has registered with them
        self.registered: list[tuple[type, type]] = []
        #: classes that count as sequences or mappings in patterns since they have been registered: `Py_TPFLAGS_…`
        self.patterns: dict[type, int] = {}
        self.traced_codes: dict[int, CodeType] = {}
        self.root_code: Any = None
        #: whether generated code could call the frame's function again, with the same arguments
        self.repeatable = False
        #: why the frame must run as ordinary Python from its beginning if there is a break at all
        self.unresumable: Any = None
        #: whether the program has let go of an argument before the graph break
        self.drops_arguments = False
        self.root_args: list[Any] = []  # the arguments of the frame being traced
        self.outer_exception = sys.exception()
        self.break_stack: list[tuple[CodeType, int]] = []
        self.host_failure: Exception | None = None
        self._globals: dict[int, Any] = {}
        self._made_globals: dict[int, MadeGlobals] = {}
        self._constants: dict[int, Constant] = {}
        self._extensions: dict[type, Any] = {}
        self._intercepts: dict[int, Any] = {}
        self.space = StandardSpace(self)
        for hook in TRACE_HOOKS:
            hook(self)

    def close(self) -> None:
        """The trace is over: give back what higher layers have taken (modes, global state)."""
        if self.recorder is not None:
            self.recorder.close()
        self.space.release()
        for cls in self.fresh_classes:
            detach(cls)
        for cyclic in (
            self._extensions,
            self._globals,
            self._made_globals,
            self._constants,
            self._intercepts,
            self.fresh_classes,
        ):
            cyclic.clear()
        self.class_overlays.clear()
        self.recorder = self.frame = self.compute = None
        self.root_args = []
        self.calls_back = ()
        self.effects = Effects()
        self.outer_exception = None

    # -- what the trace assumes and does ----------------------------------------------------------------------------

    def guard(self, guard: Guard) -> None:
        """Assume something about the frame; equal guards are kept once."""
        key = guard.key
        if key not in self.guards:
            frame = self.frame
            if frame is not None and guard.where is None:
                guard.where = (frame.code, frame.line())
            self.guards[key] = guard
            self.count_item(_GUARD_COST)

    def defer(self, function: Any, args: list[Value], kwargs: dict[str, Value] | None = None) -> None:
        """Perform `function(*args, **kwargs)` after the graph, in order: it acts on the world outside the program."""
        self.mutation_count += 1
        self.effects.deferred(function, args, kwargs or {})

    def keep_shared(self, value: Value) -> None:
        """An object is to be changed or handed out: one that others have too must then be the real one."""
        found = self.shared.get(id(value))
        if found is not None:
            raise Restart(found[1], errors.CachedFunction(found[2], "gives a result that is changed or kept"))

    def count_item(self, cost: int = 1) -> None:
        """An item is taken out of an iterator, or so: a long loop may run inside of one instruction."""
        self.items += cost
        if self.items > _MOST_ITEMS:
            raise self._too_long(_MOST_ITEMS)

    def extension(self, cls: type[T]) -> T:
        """The one object of this class that belongs to this trace, made as `cls(trace)` when first asked for."""
        found = self._extensions.get(cls)
        if found is None:
            found = self._extensions[cls] = cls(self)  # type: ignore[call-arg]
        return found

    def literal(self, host: Any, source: Source) -> Value | None:
        """A number read from the frame that is to be symbolic; None for an ordinary constant."""
        for hook in LITERAL_HOOKS:
            value = hook(self, host, source)
            if value is not None:
                return value
        return None

    def decide(self, value: Value) -> Any:
        """The host value on which control flow depends: known, or assumed of a symbol under a guard."""
        value = value.force()
        if value.symbolic:
            for decider in DECIDERS:
                decided = decider(self, value)
                if decided is not None:
                    return decided
        return value.as_host(self.space)

    def branch(self, frame: Frame, value: Value, when_true: int, when_false: int) -> bool:
        """The truth value on which a conditional jump depends."""
        try:
            return self.space.truth(value)
        except Unsupported:
            decided = self._assumed(frame, value, when_true, when_false)
            if decided is None:
                raise
            return decided

    def truth(self, frame: Frame, value: Value, negated: bool = False) -> bool:
        """The truth value that the instruction being executed pushes, or `negated` the opposite of it."""
        try:
            return self.space.truth(value)
        except Unsupported:
            decided = self.assumed(frame, value, negated)
            if decided is None:
                raise
            return decided

    def assumed(self, frame: Frame, value: Value, negated: bool = False) -> bool | None:
        """The same where it is not known, if it may be assumed: all it does is to decide the next branch."""
        ahead = frame.branch_ahead(negated)
        return None if ahead is None else self._assumed(ahead[0], value, *ahead[1:])

    @staticmethod
    def _assumed(frame: Frame, value: Value, when_true: int, when_false: int) -> bool | None:
        for hook in BRANCH_HOOKS:
            decided = hook(frame, value.force(), when_true, when_false)
            if decided is not None:
                return decided
        return None

    def intercept(self, host: Any) -> Any:
        """The model of a Python function that is not to be traced into, or None."""
        key = id(host)
        if key not in self._intercepts:
            self._intercepts[key] = next((m for ask in INTERCEPTS if (m := ask(host)) is not None), None)
        return self._intercepts[key]

    # -- running frames ---------------------------------------------------------------------------------------------

    def root(self, function: Any, code: CodeType, args: list[Any], unbound: Any) -> Frame:
        """The frame being traced, its arguments unread."""
        value = self._root_function(function)
        value.code = code
        total = argument_count(code)
        bound = {
            name: self.space.wrap(arg, LocalSource(i, name))
            for i, (name, arg) in enumerate(zip(code.co_varnames[:total], args, strict=False))
            if arg is not unbound
        }
        self.traced_codes[id(code)] = code
        self.root_code = code
        self.root_args = args
        self.repeatable = len(bound) == total
        return Frame(self, value, bound, parent=None, tail=True)

    def handled_by_callers(self) -> Value | None:
        """The exception that the callers of the frame being traced are handling."""
        value = self.space.wrap(self.outer_exception, _HANDLED).force()
        return None if value.cls is type(None) else value

    def _root_function(self, function: Any) -> FunctionValue:
        source = FunctionSource()
        value = FunctionValue.from_host(self.space, function, ConstSource(function, "<running function>"))
        value.source = source
        closure = function.__closure__ or ()
        value._cells = [
            self.space.existing_cell(
                cell,
                ItemSource(GetAttrSource(source, "__closure__"), i),
                CellSource(i, function.__code__.co_freevars[i]),
            )
            for i, cell in enumerate(closure)
        ]
        self.space._by_id[id(function)] = value
        return value

    def inline(self, function: FunctionValue, bound: dict[str, Value], tail: bool) -> Value:
        """Run the frame of a call inside this trace."""
        if GIVEN_UP and function.code in GIVEN_UP:
            raise Unsupported(errors.FrameGivenUp(function.qualname, "its first instruction cannot be traced"))
        parent = self.frame
        suspendable = is_suspendable(function.code)
        frame = Frame(self, function, bound, parent=parent, tail=tail and not suspendable)
        if suspendable:
            return generator.make(frame)
        self.enter_frame(frame)
        try:
            return frame.run()
        finally:
            self.leave_frame(frame)

    def inline_class_body(self, function: FunctionValue, namespace: Value) -> Value:
        """Execute a class body with `namespace` as its locals; returns the class cell, or None."""
        frame = Frame(self, function, {}, parent=self.frame)
        frame.namespace = namespace
        self.enter_frame(frame)
        try:
            return frame.run()
        finally:
            self.leave_frame(frame)

    def enter_frame(self, frame: Frame) -> None:
        self.depth += 1
        if self.depth > self.deepest:
            self.deepest = self.depth
        self.traced_codes[id(frame.code)] = frame.code
        if self.depth >= self.calls_left:
            raise NearRecursionLimit
        if self.depth > self.config.inline_depth_limit:
            self.depth -= 1
            raise Unsupported(errors.InlineTooDeep(frame.code.co_qualname, self.depth))

    def leave_frame(self, frame: Frame) -> None:
        self.depth -= 1

    @property
    def current_frame(self) -> Frame:
        """The innermost frame being executed."""
        return self.frame  # type: ignore[no-any-return]

    def is_held(self, host: Any) -> bool:
        """Whether a variable or a stack entry of a running frame is this existing object."""
        return self._holds(self._running(), host)

    def _running(self) -> list[interfaces.Frame]:
        frames: list[interfaces.Frame] = []
        frame = self.frame
        while frame is not None:
            frames.append(frame)
            frame = frame.parent
        return frames

    def has_dropped_arguments(self) -> bool:
        """Whether the program has let go of an argument of the frame being traced, which the real frame keeps."""
        return self._has_dropped(self._running())

    def _holds(self, frames: list[interfaces.Frame], host: Any) -> bool:
        for frame in frames:
            for value in (*frame.locals.values(), *frame.stack, *(c.contents for c in frame.cells.values())):
                if value is not None and (value.host if type(value) is Lazy else self.space.identity(value)) is host:
                    return True
        return False

    def note_dropped(self, frames: list[interfaces.Frame]) -> None:
        """At a graph break: whether the program has let go of an argument of the frame being traced."""
        self.drops_arguments = self._has_dropped(frames)

    def _has_dropped(self, frames: list[interfaces.Frame]) -> bool:
        args = [arg for arg in self.root_args if not is_immutable(type(arg))]
        return not all(self._holds(frames, arg) for arg in args)

    # -- ending -----------------------------------------------------------------------------------------------------

    def lose(self, generator: Any) -> None:
        """The program has let go of a generator that is suspended: it is closed before the next instruction."""
        self.lost.append(generator)
        self.next_stop = 0

    def close_lost(self) -> None:
        """Close the generators that the program has let go of."""
        while self.lost:
            generator = self.lost.pop(0)
            try:
                generator.tp_del(self.space)
            except (Raised, Unsupported, NotKnown):  # what is raised goes to the hook for unraisable errors
                self.lost.append(generator)
                raise Unsupported(errors.LifetimeObserved("a generator that fails when it is closed")) from None

    def end(self, frame: interfaces.Frame) -> None:
        """The frame being traced has returned, and lets go of its variables."""
        if self.unfinished or not frame.shown:
            frame.locals, frame.cells = {}, {}
        frame.stack.clear()
        self.frame = frame
        self.close_lost()
        self.frame = None

    def stop(self, instr: Any) -> None:
        """The step at which the trace was told to end, or may not go beyond."""
        if not self.next_stop:
            planned = self.stop_at if self.stop_at >= self.steps else self.config.trace_step_limit
            self.next_stop = planned
            self._settle(instr)
            if self.steps < planned:
                return
        if self.steps >= self.config.trace_step_limit:
            raise self._too_long(self.config.trace_step_limit)
        if self.steps < self.stop_at:
            return
        if instr.op in _PROLOGUE or (self.forced(self.stop_reason) and not enterable(self.frame.code, instr.index)):
            self.stop_at += 1
            return
        if self.steps == self.stop_at:
            self.next_stop = self.config.trace_step_limit
            raise Unsupported(self.stop_reason)

    def _settle(self, instr: Any) -> None:
        """What the instruction before has let go of ends before this one."""
        if self.lost:
            frame = self.current_frame
            frame.index -= 1
            try:
                self.close_lost()
            finally:
                frame.index += 1
        for host in self.effects.released():
            frames = self._running()
            if any(stands_for(value, host) for frame in frames for value in frame.stack):
                self.next_stop = 0  # not yet
            elif not reaches(self, host):
                if instr.op not in _PROLOGUE and enterable(self.frame.code, instr.index):
                    raise Unsupported(errors.LifetimeObserved("letting go of an object that notices its end"))
                self.next_stop = 0

    def _too_long(self, limit: int) -> Unsupported:
        """The inlined calls that took most of the trace would be too long by themselves too."""
        found: dict[CodeType, None] = {}
        at = self.frame
        while at is not None and at.parent is not None:
            if (self.steps - at.begun) * 2 > self.steps and not is_suspendable(at.code):
                found[at.code] = None
            at = at.parent
        self.overlong = tuple(found)
        return Unsupported(errors.TraceTooLong(limit))

    def forced(self, brk: Any) -> bool:
        """Whether the break is one that executes nothing natively: tracing goes on at the same instruction."""
        return isinstance(brk, errors.ForcedBreak)

    def host_error(self, error: Exception) -> Unsupported:
        """A failure of Stator's own while executing one instruction: that instruction is left to Python."""
        self.host_failure = error
        if self.config.verbose:
            traceback.print_exception(error, file=sys.stderr)
        where = traceback.extract_tb(error.__traceback__)[-1]
        failure = f"{type(error).__name__}: {error} ({where.filename.rsplit('/', 1)[-1]}:{where.lineno})"
        name = self.frame.code.co_qualname if self.frame is not None else "?"
        return Unsupported(errors.HostErrorWhileTracing(name, failure))

    def note_break_site(self, frame: Frame, instr: Any) -> None:
        """Remember the user stack of the innermost frame in which a break was met."""
        if self.break_stack:
            return
        at: Frame | None = frame
        while at is not None:
            line = instr.line if at is frame else at.line()
            self.break_stack.append((at.code, line or at.code.co_firstlineno))
            at = at.parent

    # -- classes made or changed by the traced program --------------------------------------------------------------

    def is_fresh_class(self, cls: type) -> bool:
        return cls in self.fresh_classes

    def fresh_class_value(self, cls: type) -> Value | None:
        return self.fresh_classes.get(cls)

    # -- globals ----------------------------------------------------------------------------------------------------

    def globals_of(self, host: dict[str, Any]) -> Any:
        """The value of a function's globals: that of its module's `__dict__`, which it shares."""
        if type(host) is MadeGlobals:
            return host.names
        found = self._globals.get(id(host))
        if found is None:
            module = sys.modules.get(host.get("__name__", ""))
            if isinstance(module, ModuleType) and module.__dict__ is host:
                found = ModuleValue.unmet(self.space, module).attr_dict(self.space)
            else:
                found = NamedItems(self.space.existing(host, f"globals of {host.get('__name__', '?')}"))
            self._globals[id(host)] = found
        return found

    def globals_from(self, value: Value) -> dict[str, Any]:
        """The dict as the globals of code: the existing one, or what stands for one made by the program."""
        host = self.space.identity(value)
        if isinstance(host, dict):
            self.space.guard_identity_of(value.source, host)
            return host
        if id(value) not in self._made_globals:
            self._made_globals[id(value)] = MadeGlobals(value)
        return self._made_globals[id(value)]

    def builtins_of(self, host: dict[str, Any]) -> Any:
        """The value of the builtins that go with a function's globals."""
        if type(host) is MadeGlobals:
            value = host.names.get_str(self.space, "__builtins__")
            if value is None:  # of a function that was made with `types.FunctionType`
                return self.globals_of(sys.modules["builtins"].__dict__)
            known = self.space.identity(value)
            if not isinstance(known, ModuleType | dict):
                if value.force().cls is not dict:
                    raise Unsupported(errors.UnsupportedObject("a function whose builtins are no dict"))
                return NamedItems(value)
            host = {"__builtins__": known}
        builtins = host.get("__builtins__")
        if builtins is None:
            builtins = sys.modules["builtins"]
        return self.globals_of(builtins.__dict__ if isinstance(builtins, ModuleType) else builtins)

    def constant(self, host: Any) -> Constant:
        """The value of a code constant, one per object."""
        found = self._constants.get(id(host))
        if found is None:
            found = self._make_constant(host)
            self._constants[id(host)] = found
            self.space._kept.append(host)
        return found

    def _make_constant(self, host: Any) -> Any:
        if type(host) in (tuple, frozenset):
            return self.space.fresh(host)
        return Constant(host) if is_immutable(type(host)) else self.space.existing(host)
