"""What models see of the parts that stand above them: the trace, its frames, its side effects, the writer.

Each is a protocol of what models and the space really use; `stator.interp.trace.Trace`, `stator.interp.frame.Frame`,
`stator.interp.side_effects.Effects` and `stator.codegen.writer.Writer` are what they meet. So a model imports nothing
above it, and one can read here what a trace is to a model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CodeType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeVar

if TYPE_CHECKING:
    import weakref

    from stator.bytecode.decode import Decoded, Instr
    from stator.config import Config
    from stator.guards.base import Guard
    from stator.guards.source import Source
    from stator.space.space import Space
    from stator.space.value import Raised, Unsupported, Value

__all__ = ["Frame", "SideEffects", "Trace", "Writer"]

T = TypeVar("T")


class Writer(Protocol):
    """Writes the residual program; see `stator.codegen.writer.Writer`."""

    lines: list[str]
    late: list[str]
    namespace: dict[str, Any]
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

    def const(self, host: Any, hint: str | None = None) -> str:
        """A literal, a builtin's own name, or the name of a known object embedded in the program's globals."""

    def new_nan(self, host: float) -> str:
        """The NaN that the traced program has computed."""

    def globals(self, host: dict[str, Any]) -> str:
        """The globals of a function or frame."""

    def generator(self, value: Any) -> str:
        """A suspended generator of the traced program, made anew at the place where it is suspended."""

    def is_literal(self, host: Any) -> bool:
        """Whether `repr(host)` is Python source for the very object."""


class SideEffects(Protocol):
    """The log of what the traced program did to things that existed before; see `interp/side_effects.py`."""

    count: int

    def mutated(self, value: Value, watched: tuple[Any, ...] = ()) -> bool:
        """An existing object is about to change; whether it may let go of one that notices that."""

    def released(self) -> list[Any]:
        """The objects that notice their end and are no longer held by what has held them before the trace."""

    def is_mutated(self, value: Value) -> bool:
        """Whether the existing object has been changed by the traced program."""

    def changed(self) -> list[Value]:
        """The existing objects that the traced program has changed."""

    def changed_hosts(self) -> list[Any]:
        """The existing objects that the traced program has changed, as they still are."""

    def matter(self) -> bool:
        """Whether anything is to be done that a function which is called now could miss."""

    def acts(self) -> bool:
        """Whether anything is to be done to the world outside."""

    def is_deferred(self, function: Any) -> bool:
        """Whether a call of the function is put off."""

    def deferred(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> None:
        """`function(*args, **kwargs)` acts on the world outside: perform it after the graph, in order."""

    def prepare(self, writer: Writer) -> list[str]:
        """Emit what the effects need, and return the lines that perform them."""


class Frame(Protocol):
    """A frame of the traced program; see `stator.interp.frame.Frame`."""

    code: CodeType
    decoded: Decoded
    instrs: tuple[Instr, ...]
    function: Any
    globals: dict[str, Any]
    locals: dict[str, Value]
    cells: dict[str, Any]
    namespace: Any
    stack: list[Value]
    index: int
    begun: int
    result: Value | None
    tail: bool
    resumable: bool
    resumed: bool
    left: bool
    shown: bool
    handled: Value | None
    handlers: list[Any]
    reraised: int | None
    generator: Any
    parent: Any

    @property
    def trace(self) -> Trace:
        """The trace it is executed in."""

    @property
    def space(self) -> Space:
        """The trace's space."""

    def handled_outside(self) -> Value | None:
        """What the callers are handling."""

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


class Trace(Protocol):
    """All that is known about one symbolic execution of one frame; see `stator.interp.trace.Trace`."""

    config: Config
    dynamic: bool | None
    region_state: dict[Any, Any]
    done_first: set[Any]
    unfinished: weakref.WeakSet[Any]
    lost: list[Any]
    prologue: Callable[[], object] | None
    mutation_count: int
    steps: int
    depth: int
    next_stop: int
    recursion_limit: int
    frame: Any
    recorder: Any
    shared: dict[int, tuple[Value, int, str]]
    class_overlays: dict[type, dict[str, Value]]
    fresh_classes: dict[type, Value]
    registered: list[tuple[type, type]]
    patterns: dict[type, int]
    traced_codes: dict[int, CodeType]
    root_code: Any
    root_args: list[Any]
    repeatable: bool
    unresumable: Any
    outer_exception: BaseException | None
    ended_by: Value | None
    end_wanted: bool
    calls_back: tuple[Any, ...]
    compute: Callable[..., Any] | None
    host_failure: Exception | None

    @property
    def space(self) -> Space:
        """The operations on its values."""

    @property
    def effects(self) -> SideEffects:
        """What the program did to things that existed before."""

    @property
    def current_frame(self) -> Any:
        """The innermost frame being executed."""

    def guard(self, guard: Guard) -> None:
        """Assume something about the frame; equal guards are kept once."""

    def defer(self, function: Any, args: list[Value], kwargs: dict[str, Value] | None = None) -> None:
        """Perform `function(*args, **kwargs)` after the graph, in order: it acts on the world outside the program."""

    def extension(self, cls: type[T]) -> T:
        """The one object of this class that belongs to this trace, made as `cls(trace)` when first asked for."""

    def keep_shared(self, value: Value) -> None:
        """An object is to be changed or handed out: one that others have too must then be the real one."""

    def count_item(self, cost: int = 1) -> None:
        """An item is taken out of an iterator, or so: a long loop may run inside of one instruction."""

    def decide(self, value: Value) -> Any:
        """The host value on which control flow depends: known, or assumed of a symbol under a guard."""

    def literal(self, host: Any, source: Source) -> Value | None:
        """A number read from the frame that is to be symbolic; None for an ordinary constant."""

    def intercept(self, host: Any) -> Any:
        """The model of a Python function that is not to be traced into, or None."""

    def constant(self, host: Any) -> Value:
        """The value of a code constant, one per object."""

    def inline(self, function: Any, bound: dict[str, Value], tail: bool) -> Value:
        """Run the frame of a call inside this trace."""

    def inline_class_body(self, function: Any, namespace: Value) -> Value:
        """Execute a class body with `namespace` as its locals; returns the class cell, or None."""

    def enter_frame(self, frame: Any) -> None:
        """A call begins."""

    def leave_frame(self, frame: Any) -> None:
        """A call has ended."""

    def handled_by_callers(self) -> Value | None:
        """The exception that the callers of the frame being traced are handling."""

    def is_held(self, host: Any) -> bool:
        """Whether a variable or a stack entry of a running frame is this existing object."""

    def has_dropped_arguments(self) -> bool:
        """Whether the program has let go of an argument of the frame being traced, which the real frame keeps."""

    def lose(self, generator: Any) -> None:
        """The program has let go of a generator that is suspended: it is closed before the next instruction."""

    def is_fresh_class(self, cls: type) -> bool:
        """Whether the trace has made the class."""

    def fresh_class_value(self, cls: type) -> Value | None:
        """The value of a class that the trace has made, or None."""

    def globals_of(self, host: dict[str, Any]) -> Any:
        """The value of a function's globals: that of its module's `__dict__`, which it shares."""

    def globals_from(self, value: Value) -> dict[str, Any]:
        """The dict as the globals of code: the existing one, or what stands for one made by the program."""

    def builtins_of(self, host: dict[str, Any]) -> Any:
        """The value of the builtins that go with a function's globals."""

    def is_none(self, value: Value) -> bool:
        """`value is None`."""

    def loaded(self, name: str) -> Value | None:
        """`sys.modules[name]` as the program has left it, or None."""

    def import_parts(self, full: str, module: Value, names: Iterable[Any]) -> None:
        """Of a package, submodules that are no attributes yet are imported."""

    def first_import(self, full: str) -> NoReturn:
        """Have a module imported; a break where that was no use, or where its body could see what is not done yet."""

    def forced(self, brk: Any) -> bool:
        """Whether the break is one that executes nothing natively: tracing goes on at the same instruction."""

    def stop(self, instr: Any) -> None:
        """The step at which the trace was told to end, or may not go beyond."""

    def note_break_site(self, frame: Any, instr: Any) -> None:
        """Remember the user stack of the innermost frame in which a break was met."""

    def host_error(self, error: Exception) -> Unsupported:
        """A failure of Stator's own while executing one instruction: that instruction is left to Python."""

    # -- what opcodes need besides the space --------------------------------------------------------------------------

    def truth(self, frame: Any, value: Value, negated: bool = False) -> bool:
        """The truth value that the instruction being executed pushes, or `negated` the opposite of it."""

    def branch(self, frame: Any, value: Value, when_true: int, when_false: int) -> bool:
        """The truth value on which a conditional jump depends."""

    def assumed(self, frame: Any, value: Value, negated: bool = False) -> bool | None:
        """The truth value where it is not known, if it may be assumed: all it does is to decide the next branch."""

    def is_builtin(self, value: Value, host: Any) -> bool:
        """Whether the value is this builtin object."""

    def new_slice(self, start: Value, stop: Value, step: Value) -> Value:
        """`slice(start, stop, step)`."""

    def new_function(self, frame: Any, code: Value) -> Any:
        """`MAKE_FUNCTION`: a function of the frame's globals."""

    def matches_flag(self, value: Value, flag: int) -> Value:
        """Whether the class counts as a sequence or mapping in patterns (`Py_TPFLAGS_SEQUENCE`, `_MAPPING`)."""

    def star_items(self, iterable: Value) -> list[Value]:
        """`[*iterable]`, with CPython's message for what is not iterable."""

    def star_args(self, positional: Value, function: Value) -> list[Value]:
        """`f(*positional)`."""

    def keyword_args(self, keywords: Value, function: Value) -> dict[str, Value]:
        """`f(**keywords)`."""

    def merge_keywords(self, target: Value, mapping: Value, function: Value) -> None:
        """`f(**mapping)` into the dict of keywords: no key twice, all of them strings."""

    def import_name(self, frame: Any, name: str, fromlist: Value, level: Value) -> Value:
        """`import name`: known when the module has been imported already, else a break."""

    def import_from(self, module: Value, name: str) -> Value:
        """`from module import name`."""
