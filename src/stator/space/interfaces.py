"""What models see of the parts that stand above them: the trace, its frames, its side effects, the writer.

Each is a protocol of what models and the space really use; `stator.interp.trace.Trace` with its parts,
`stator.interp.frame.Frame`, `stator.interp.side_effects.Effects` and `stator.codegen.writer.Writer` are what they meet.
So a model imports nothing above it, and one can read here what a trace is to a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from stator.space.host_types import Host

if TYPE_CHECKING:
    import weakref
    from contextlib import AbstractContextManager

    from stator.bytecode.decode import Decoded, Instr
    from stator.config import Config
    from stator.errors import Break
    from stator.guards.base import Guard
    from stator.guards.naming import Names as PathNames
    from stator.guards.source import Source
    from stator.space.space import Space
    from stator.space.value import Raised, Unsupported, Value

__all__ = ["CompileRegion", "Frame", "Names", "SideEffects", "Trace", "Writer"]

T = TypeVar("T")


class Writer(Protocol):
    """Writes the residual program; see `stator.codegen.writer.Writer`."""

    lines: list[str]
    first: list[str]
    late: list[str]
    namespace: dict[str, Host]
    outputs: list[Value]

    @property
    def trace(self) -> Trace:
        """The trace that the program is of."""

    def name(self, hint: str) -> str:
        """A fresh variable name like `hint`."""

    def line(self, text: str) -> None:
        """Emit one line, now."""

    def assign(self, hint: str, expression: str) -> str:
        """Emit `name = expression`; returns the name."""

    def expr(self, value: Value) -> str:
        """The expression for a value; an object is made once, however often it is asked for."""

    def attempt(self, value: Value) -> str | None:
        """The expression for a value, or None, with nothing emitted, if generated code cannot make it."""

    def is_made(self, value: Value) -> bool:
        """Whether code for the object has been emitted already."""

    def is_unfinished(self, value: Value) -> bool:
        """Whether the object has still to get its contents."""

    def name_value(self, value: Value, name: str) -> None:
        """The object has been made and is called `name`; what is emitted next may already refer to it."""

    def early(self, value: Value) -> str:
        """Emit the empty object now and its contents later: something in its contents refers to it."""

    def shell_of(self, value: Value) -> str | None:
        """The name of the empty object that a cycle has asked for, or None."""

    def source(self, source: Source) -> str:
        """The parameter that the guard program fills with what is found at `source`."""

    def graph_output(self, value: Value) -> str:
        """The variable holding what the graph computes for this value."""

    def const(self, host: Host, hint: str | None = None) -> str:
        """A literal, a builtin's own name, or the name of a known object embedded in the program's globals."""

    def new_nan(self, host: float) -> str:
        """The NaN that the traced program has computed."""

    def globals(self, host: dict[str, Host]) -> str:
        """The globals of a function or frame."""

    def generator(self, value: Any) -> str:
        """A suspended generator of the traced program, made anew at the place where it is suspended."""

    def is_literal(self, host: Host) -> bool:
        """Whether `repr(host)` is Python source for the very object."""


class SideEffects(Protocol):
    """The log of what the traced program did to things that existed before; see `interp/side_effects.py`."""

    count: int
    witness: list[Value] | None
    assigned: dict[Source, Value]

    def witnessed(self) -> AbstractContextManager[list[Value]]:
        """A list of all that changes meanwhile, also of what the traced program has made."""

    def mutated(self, value: Value, watched: tuple[Host, ...] = ()) -> bool:
        """An existing object is about to change; whether it may let go of one that notices that."""

    def released(self) -> list[Host]:
        """The objects that notice their end and are no longer held by what has held them before the trace."""

    def is_mutated(self, value: Value) -> bool:
        """Whether the existing object has been changed by the traced program."""

    def changed(self) -> list[Value]:
        """The existing objects that the traced program has changed."""

    def changed_hosts(self) -> list[Host]:
        """The existing objects that the traced program has changed, as they still are."""

    def matter(self) -> bool:
        """Whether anything is to be done that a function which is called now could miss."""

    def acts(self) -> bool:
        """Whether anything is to be done to the world outside."""

    @property
    def call_count(self) -> int:
        """How many calls are put off."""

    def is_deferred(self, function: Host) -> bool:
        """Whether a call of the function is put off."""

    def deferred(self, function: Host, args: list[Value], kwargs: dict[str, Value]) -> None:
        """`function(*args, **kwargs)` acts on the world outside: perform it after the graph, in order."""

    def prepare(self, writer: Writer) -> list[str]:
        """Emit what the effects need, and return the lines that perform them."""


# -- frames ------------------------------------------------------------------------------------------------------------


class Handling(Protocol):
    """The exceptions being handled in a frame; see `stator.interp.handling.Handling`."""

    current: Value | None
    infos: list[Any]
    reraised: int | None

    def resume(self, parent: Any) -> None:
        """The frame of a generator goes on: outside of its own clauses it is handling what its caller is."""


class Afterlife(Protocol):
    """What becomes of a frame, as the tracebacks that it is in can show; see `stator.interp.frame.Afterlife`."""

    resumed: bool
    left: bool
    shown: bool


class Frame(Protocol):
    """A frame of the traced program; see `stator.interp.frame.Frame`."""

    code: CodeType
    decoded: Decoded
    instrs: tuple[Instr, ...]
    function: Any
    globals: dict[str, Host]
    locals: dict[str, Value]
    cells: dict[str, Any]
    namespace: Any
    stack: list[Value]
    index: int
    begun: int
    result: Value | None
    in_tail_position: bool
    resumable: bool
    generator: Any
    parent: Any

    @property
    def trace(self) -> Trace:
        """The trace it is executed in."""

    @property
    def space(self) -> Space:
        """The trace's space."""

    @property
    def handling(self) -> Handling:
        """The exceptions being handled in it."""

    @property
    def afterlife(self) -> Afterlife:
        """What becomes of it."""

    def being_handled(self) -> Value | None:
        """The exception that is being handled, in this frame or in any of its callers."""

    def push(self, value: Value) -> None:
        """Put a value onto the stack."""

    def pop(self) -> Value:
        """Take the topmost value off the stack."""

    def run(self) -> Value:
        """Execute to the end, or to the next `yield`."""

    def unwind(self, raised: Raised, instr: Instr) -> None:
        """Find the handler of an exception; raises it on where there is none."""

    def line(self) -> int:
        """The line of the instruction being executed."""

    def last(self) -> Instr:
        """The instruction that a frame object shows: the one being executed, or at which it has raised."""

    def hosts(self) -> Iterable[Host]:
        """The existing objects that are its variables and stack entries."""

    def holds(self, host: object) -> bool:
        """Whether a variable or a stack entry is this existing object."""


# -- the trace and its parts -------------------------------------------------------------------------------------------


class Pool(Protocol):
    """The `stator.compile()` calls of one kind; see `stator.compiler.pool.Pool`."""

    shared_state: dict[object, Any]


class CompileRegion(Protocol):
    """A `stator.compile()` call; see `stator.compiler.region.CompileRegion`."""

    backend: Host
    asked: tuple[Host, str | None, dict[str, Host]]
    root: CodeType | None
    fullgraph: bool

    @property
    def pool(self) -> Pool:
        """The compile() calls like it."""


class RootFrame(Protocol):
    """The frame being traced; see `stator.interp.root_frame.RootFrame`."""

    code: CodeType
    args: list[Host]
    names: PathNames
    repeatable: bool
    unresumable: Break | None
    outer_exception: BaseException | None

    def reads_names_of(self, globals_: Host) -> None:
        """Names are looked up in these globals, which may be the frame's own."""

    def handled_by_callers(self) -> Value | None:
        """The exception that its callers are handling."""

    def dropped_by(self, frames: list[Frame]) -> bool:
        """Whether an argument is no longer held by the frames, which the real frame keeps."""


class InlinedCalls(Protocol):
    """The calls that the trace has inlined; see `stator.interp.inlined_calls.InlinedCalls`."""

    depth: int
    recursion_limit: int
    codes: dict[int, CodeType]

    def inline(self, function: Any, bound: dict[str, Value], in_tail_position: bool) -> Value:
        """Run the frame of a call inside this trace."""

    def inline_class_body(self, function: Any, namespace: Value) -> Value:
        """Execute a class body with `namespace` as its locals; returns the class cell, or None."""

    def enter(self, frame: Frame) -> None:
        """A call begins."""

    def leave(self) -> None:
        """A call has ended."""


class Stops(Protocol):
    """The steps before which the trace stops; see `stator.interp.stops.Stops`."""

    next: int

    def soon(self) -> None:
        """Something is to be looked at before the next instruction."""

    def reached(self, instr: Instr) -> None:
        """The step `next` has come: do what is to be done before the instruction, or end the trace."""

    def count_item(self, cost: int = 1) -> None:
        """An item is taken out of an iterator, or so: a long loop may run inside of one instruction."""


class Finalizers(Protocol):
    """Objects whose end the program may notice; see `stator.interp.finalizers.Finalizers`."""

    suspended_in_finally: weakref.WeakSet[Any]
    pending_close: list[Any]
    calls_back: tuple[Host, ...]
    prologue: Callable[[], object] | None

    def close_later(self, generator: Any) -> None:
        """The program has let go of a generator that is suspended: it is closed before the next instruction."""

    def settle(self, can_break: bool) -> None:
        """What the instruction before has let go of ends before this one; `can_break`: whether the trace can."""


class BreakReport(Protocol):
    """Where and why the trace broke; see `stator.interp.break_report.BreakReport`."""

    @property
    def resumed(self) -> list[CodeType]:
        """The codes that go on behind the break."""

    def note_site(self, frame: Frame, instr: Instr, brk: Break) -> None:
        """Remember the user stack of the innermost frame in which a break was met."""

    def codes_within(self, frame: Frame) -> list[CodeType]:
        """The code of the frame, and of those inside of it in which the break was met."""

    def host_error(self, error: Exception, frame: Frame | None) -> Unsupported:
        """A failure of Stator's own while executing one instruction: that instruction is left to Python."""


class ClassChanges(Protocol):
    """Classes that the program has made or changed; see `stator.models.classes.class_changes.ClassChanges`."""

    fresh: dict[type, Value]
    overlays: dict[type, dict[str, Value]]
    registered: list[tuple[type, type]]
    patterns: dict[type, int]

    def is_fresh(self, cls: type) -> bool:
        """Whether the trace has made the class."""

    def matches(self, cls: type, flag: int) -> bool:
        """Whether the class counts as a sequence or mapping in patterns."""


class Names(Protocol):
    """What names are looked up in: the globals of code, or builtins."""

    def value(self, space: Space) -> Value:
        """The dict as the program sees it."""

    def get_str(self, space: Space, name: str) -> Value | None:
        """What the name stands for, or None."""

    def set_str(self, space: Space, name: str, value: Value) -> None:
        """Give the name a value."""

    def del_str(self, space: Space, name: str) -> bool:
        """Delete the name; whether it was there."""


class Namespaces(Protocol):
    """What code finds around it; see `stator.space.globals_.Namespaces`."""

    def globals_of(self, host: dict[str, Host]) -> Names:
        """The names in a function's globals: those of its module's `__dict__`, which it shares."""

    def globals_from(self, value: Value) -> dict[str, Host]:
        """The dict as the globals of code: the existing one, or what stands for one made by the program."""

    def builtins_of(self, host: dict[str, Host]) -> Names:
        """The builtins that go with a function's globals."""

    def constant(self, host: object) -> Value:
        """The value of a code constant, one per object."""


class Trace(Protocol):
    """All that is known about one symbolic execution of one frame; see `stator.interp.trace.Trace`."""

    config: Config
    region_state: dict[object, Any]
    dynamic: Any
    done_first: set[object]
    mutation_count: int
    steps: int
    frame: Any
    recorder: Any

    @property
    def compile_region(self) -> CompileRegion:
        """The compile() call that it is made for."""

    @property
    def space(self) -> Space:
        """The operations on its values."""

    @property
    def effects(self) -> SideEffects:
        """What the program did to things that existed before."""

    @property
    def root(self) -> RootFrame:
        """The frame being traced."""

    @property
    def calls(self) -> InlinedCalls:
        """The calls being inlined."""

    @property
    def stops(self) -> Stops:
        """Where it stops."""

    @property
    def breaks(self) -> BreakReport:
        """Where and why it broke."""

    @property
    def finalizers(self) -> Finalizers:
        """Objects whose end the program may notice."""

    @property
    def classes(self) -> ClassChanges:
        """Classes that the program has made or changed."""

    @property
    def namespaces(self) -> Namespaces:
        """Globals, builtins and constants."""

    def guard(self, guard: Guard) -> None:
        """Assume something about the frame; equal guards are kept once."""

    def line(self) -> tuple[CodeType, int] | None:
        """The program's own line that is being executed; None where there is none."""

    def defer(self, function: Host, args: list[Value], kwargs: dict[str, Value] | None = None) -> None:
        """Perform `function(*args, **kwargs)` after the graph, in order: it acts on the world outside the program."""

    def extension(self, cls: type[T]) -> T:
        """The one object of this class that belongs to this trace, made as `cls(trace)` when first asked for."""

    def assumed(self, value: Value) -> bool | None:
        """A truth value that is not known, if it may be assumed: all that the call being made does with it is to
        decide the next branch."""

    def running(self) -> list[Frame]:
        """The frames being executed, innermost first."""
