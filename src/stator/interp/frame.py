"""The symbolic frame: a value stack, locals, cells, and the loop that runs canonical instructions."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.bytecode import NULL_FIRST
from stator.bytecode.canonical import CANONICAL
from stator.bytecode.continuation import original_of
from stator.bytecode.counters import counters
from stator.bytecode.decode import Decoded, Instr, decode
from stator.interp.handling import Handling, Lasti
from stator.interp.library_calls import whole_call
from stator.models.functions.cell import CellValue
from stator.space.facts import expect_others
from stator.space.globals_ import MadeGlobals
from stator.space.signals import BreakHere, FrameState, Mode, Restart
from stator.space.value import NULL, Constant, Lazy, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Trace
    from stator.space.space import Space

Executor = Callable[["Frame", Instr], None]


def _refuse(frame: Frame, instr: Instr) -> None:
    """Executes what is not traced: the opcode's row says why."""
    raise Unsupported(errors.UnsupportedOpcode(instr.raw))


#: canonical opcode → what executes it; the opcode modules add theirs
OPCODES: dict[str, Executor] = {op: _refuse for op, row in CANONICAL.items() if row.refused}


def opcode(function: Executor) -> Executor:
    """Register a function as what executes the opcode of its name."""
    name = function.__name__
    if name not in CANONICAL or name in OPCODES:
        raise errors.InternalError(f"{name} is no row of the table of opcodes, or is executed twice")
    OPCODES[name] = function
    return function


class Afterlife:
    """What becomes of a frame, as the tracebacks that it is in can show."""

    __slots__ = ("left", "resumed", "shown")

    def __init__(self) -> None:
        #: whether the program goes on with it after the trace, in a frame object of its own
        self.resumed = False
        #: whether an exception has left it
        self.left = False
        #: whether a traceback may show it, and its variables
        self.shown = False


class Frame:
    """One frame of the traced program."""

    __slots__ = (
        "_generator",
        "afterlife",
        "begun",
        "cells",
        "code",
        "decoded",
        "function",
        "globals",
        "handling",
        "in_tail_position",
        "index",
        "instrs",
        "locals",
        "namespace",
        "parent",
        "result",
        "resumable",
        "space",
        "stack",
        "trace",
    )

    def __init__(
        self,
        trace: Trace,
        function: Any,
        bound: dict[str, Value],
        *,
        parent: Frame | None,
        in_tail_position: bool = False,
    ) -> None:
        self.trace = trace
        self.space: Space = trace.space
        self.function = function
        self.code: CodeType = function.code
        self.decoded: Decoded = decode(self.code)
        self.instrs = self.decoded.instrs
        self.globals: dict[str, Any] = function.globals
        if type(self.globals) not in (dict, MadeGlobals):
            why = "its globals are of a class derived from dict"
            raise Unsupported(errors.FrameGivenUp(self.code.co_qualname, why))
        self.locals = bound
        for name in counters(self.code) & bound.keys():
            source = bound[name].source
            if source is not None:
                expect_others(trace, source)
        self.cells: dict[str, CellValue] = {}
        self.namespace: Any = None
        self.stack: list[Value] = []
        self.index = 0
        #: the step of the trace at which it was entered, or resumed
        self.begun = trace.steps
        self.result: Value | None = None
        self._generator: Callable[[], Any] | None = None
        self.parent = parent
        #: whether the result goes unchanged onto the parent's stack, or to the caller of the frame being traced
        self.in_tail_position = in_tail_position
        #: whether a break inside can be resumed here
        self.resumable: bool = in_tail_position and (parent is None or parent.resumable)
        self.handling = Handling(parent)
        self.afterlife = Afterlife()

    @property
    def generator(self) -> Any:
        """The generator or coroutine whose body it is, which holds the frame and not the other way round; else None."""
        return None if self._generator is None else self._generator()

    @generator.setter
    def generator(self, value: Any) -> None:
        self._generator = weakref.ref(value)

    def being_handled(self) -> Value | None:
        """The exception that is being handled, in this frame or in any of its callers."""
        current = self.handling.current
        return current.force() if current is not None else self.trace.root.handled_by_callers()

    # -- the value stack --------------------------------------------------------------------------------------------

    def push(self, value: Value) -> None:
        self.stack.append(value)

    def pop(self) -> Value:
        return self.stack.pop()

    def popn(self, count: int) -> list[Value]:
        """The topmost `count` values, deepest first."""
        if not count:
            return []
        values = self.stack[-count:]
        del self.stack[-count:]
        return values

    def peek(self, depth: int = 1) -> Value:
        return self.stack[-depth]

    def push_callable(self, value: Value) -> None:
        """A callable with the NULL beside it, as the running version lays them out."""
        self.stack += (NULL, value) if NULL_FIRST else (value, NULL)

    def pop_callable(self) -> tuple[Value, list[Value]]:
        """The callable under the arguments, and its `self` if it was loaded as a method."""
        found = self.callable_at(2)
        del self.stack[-2:]
        return found

    def callable_at(self, depth: int) -> tuple[Value, list[Value]]:
        """The same, with the callable or its NULL `depth` from the top, the other one above it."""
        below, above = self.stack[-depth], self.stack[-depth + 1]
        if below is NULL:
            return above, []
        return (below, []) if above is NULL else (below, [above])

    # -- running ----------------------------------------------------------------------------------------------------

    def run(self) -> Value:
        """Execute to the end. Returns the result; raises Raised, or what ends the trace."""
        trace = self.trace
        instrs = self.instrs
        table = OPCODES
        stops = trace.stops
        trace.frame = self
        self.begun = trace.steps
        try:
            while self.result is None:
                instr = instrs[self.index]
                saved = self.stack[:]
                mutation_count = trace.mutation_count
                trace.steps = step = trace.steps + 1
                self.index += 1
                try:
                    if step >= stops.next:
                        stops.reached(instr)
                    table[instr.op](self, instr)
                except Raised as e:
                    trace.frame = self
                    self.unwind(e, instr)
                except Unsupported as e:
                    self._break(e, instr, saved, unchanged=trace.mutation_count == mutation_count, step=step)
                except BreakHere as e:
                    e.states.append(FrameState(self, instr, self.stack[:], "call"))
                    raise
                except errors.StatorError:
                    raise
                except Exception as e:
                    failure = trace.breaks.host_error(e, trace.frame)
                    self._break(failure, instr, saved, unchanged=trace.mutation_count == mutation_count, step=step)
            return self.result
        finally:
            trace.frame = self.parent

    def _break(self, e: Unsupported, instr: Instr, saved: list[Value], *, unchanged: bool, step: int) -> None:
        """Something cannot be traced: end the trace before this instruction, or let the caller's frame do so."""
        trace = self.trace
        trace.breaks.note_site(self, instr, e.brk)
        call = whole_call(self, e.brk)
        if call is not None:
            raise Unsupported(call) from None
        if not self.resumable:
            try:
                raise e
            finally:
                del e
        if not unchanged:
            raise Restart(step, e.brk, inside=True)
        mode: Mode = "enter" if isinstance(e.brk, errors.ForcedBreak) else "native"
        raise BreakHere(e.brk, [FrameState(self, instr, saved, mode)]) from None

    def unwind(self, raised: Raised, instr: Instr) -> None:
        """Find the handler of an exception, as `exception_unwind` does; raises it on where there is none."""
        value = raised.value
        value.add_traceback(self, instr)  # type: ignore[attr-defined]
        entry = instr.handler
        if entry is None:
            self.afterlife.left = True
            try:
                raise raised
            finally:
                del raised, value  # of the frame that its own traceback leads to
        del self.stack[entry.depth :]
        if entry.push_lasti:
            self.stack.append(Lasti(instr.index if self.handling.reraised is None else self.handling.reraised))
        self.handling.reraised = None
        self.stack.append(value)
        self.index = entry.target

    # -- variables --------------------------------------------------------------------------------------------------

    def line(self) -> int:
        """The line of the instruction being executed."""
        return self.instrs[max(self.index - 1, 0)].line or self.code.co_firstlineno

    def last(self) -> Instr:
        """The instruction that a frame object shows: the one being executed, or at which it has raised."""
        reraised = self.handling.reraised
        return self.instrs[max(self.index - 1, 0) if reraised is None else reraised]

    def hosts(self) -> Iterator[object]:
        """The existing objects that are its variables and stack entries."""
        for value in (*self.locals.values(), *self.stack, *(c.contents for c in self.cells.values())):
            if value is not None:
                yield host_behind(self.space, value)

    def holds(self, host: object) -> bool:
        """Whether a variable or a stack entry is this existing object."""
        return any(found is host for found in self.hosts())

    def load_global(self, name: str) -> Value:
        """A global, else a builtin; raises NameError."""
        namespaces = self.trace.namespaces
        value = namespaces.globals_of(self.globals).get_str(self.space, name)
        if value is None:
            value = namespaces.builtins_of(self.globals).get_str(self.space, name)
        if value is None:
            raise self.name_error(f"name '{name}' is not defined", name)
        return value

    def name_error(self, text: str, name: str) -> Raised:
        raised: Raised = self.space.error(NameError, text)
        raised.value.fill_field("name", Constant(name))  # type: ignore[attr-defined]
        return raised

    def unbound(self, name: str) -> Raised:
        """The error for a local or cell that has no value."""
        if name in original_of(self.code, self.index - 1)[0].co_freevars:
            text = f"cannot access free variable '{name}' where it is not associated with a value in enclosing scope"
            return self.name_error(text, name)
        text = f"cannot access local variable '{name}' where it is not associated with a value"
        return self.space.error(UnboundLocalError, text)  # which is not told the name


def host_behind(space: Space, value: Value) -> object:
    """The existing object that a value is; what has been read from a frame stays unread."""
    return value.host if type(value) is Lazy else space.identity(value)


def hosts_behind(space: Space, values: Iterable[Value]) -> Iterator[object]:
    """The existing objects that the values are or lead to: an iterator to what it goes through."""
    waiting, met = list(values), set[int]()
    while waiting:
        value = waiting.pop()
        if id(value) not in met:
            met.add(id(value))
            yield host_behind(space, value)
            waiting += value.held()


def check_complete() -> None:
    """Every canonical opcode has an implementation: run once, when the opcode modules have been imported."""
    missing = sorted(set(CANONICAL) - set(OPCODES))
    if missing:
        raise errors.InternalError(f"canonical opcodes without implementation: {', '.join(missing)}")
