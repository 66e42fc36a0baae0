"""The C++ core: frame hook, regions and their caches, guard programs, the compiled callable."""

import enum
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType, FunctionType
from typing import Any, Final, NoReturn, Protocol

_AnySet = set[Any] | frozenset[Any]

class _MissHandler(Protocol):
    def __call__(
        self, region: Region, func: Any, code: CodeType, args: list[Any], /
    ) -> Entry | BaseException | None: ...

UNBOUND: Final[object]
"""Stands for an empty argument slot."""

C_RECURSION_LIMIT: Final[int]
"""How deep C code may call itself; 0 where its calls count against the recursion limit of Python's (3.11)."""

OPERATIONS: Final[dict[str, tuple[bool, str, str, str]]]
"""The operations of guard programs by name: is it a check? which registers it reads, its operand, and its proof."""

class GuardProgram:
    """A flat list of loads and checks; see ``stator.guards.program``."""

    instructions: Final[list[tuple[str, tuple[int, ...], int, object]]]
    strict: bool
    """Each decision is re-checked with the reference program."""
    def __new__(
        cls,
        instructions: Sequence[tuple[str, tuple[int, ...], int, object]],
        outputs: Sequence[int | tuple[int, ...]],
    ) -> Any: ...
    @property
    def revalidation(self) -> tuple[int, int, int]:
        """(steps of the shortcut held, 0 if none; how often one passed; how many were made)"""

    def run(self, func: object, args: tuple[object, ...], /) -> tuple[object, ...] | int:
        """The outputs, or the index of the instruction that failed."""

    def times(self, func: object, args: tuple[object, ...], /) -> tuple[int, ...] | None:
        """The nanoseconds that each instruction takes in a walk over them, or None if one fails."""

class Entry:
    """Guards, and what runs when they pass: a callable given the program's outputs, or None for the frame itself."""

    program: Final[GuardProgram]
    target: Final[Callable[..., Any] | None]
    owner: Any
    hits: Final[int]
    depth: int
    """How deep the calls nest that the target stands for; with fewer left to the thread, the frame itself runs."""
    alone: bool
    """With no target: nothing that the frame calls is traced either."""
    drops_arguments: bool
    """A frame begun by a tail call gives its arguments up when the target begins."""
    released: int
    """The arguments that the program lets go of before the target ends, a bit each, those from the 64th on the last."""
    prologue: Final[Callable[[], object] | None]
    """Called before the guards are checked, once in a dispatch; an exception: the entry is not for this call."""
    def __new__(
        cls,
        program: GuardProgram,
        target: Callable[..., Any] | None,
        owner: Any = None,
        prologue: Callable[[], object] | None = None,
    ) -> Entry: ...

class Region:
    """The caches of one stator.compile() call."""

    owner: Any
    def __new__(cls, owner: Any = None) -> Region: ...
    def call(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call ``fn`` with this region as the thread's current one, hook on."""

    def add(self, code: CodeType, entry: Entry, /) -> None:
        """Put an entry first in this region's cache of the code."""

    def entries(self, code: CodeType, /) -> list[Entry]:
        """The code's entries here, oldest first."""

    def clear(self) -> None:
        """Drop all entries."""

class Compiled:
    """``region.call(fn, …)`` as a callable; binds like a function.

    It bears the names of `named`, which is `fn` itself if not given.
    """

    __wrapped__: Final[Callable[..., Any]]
    __name__: str
    __qualname__: str
    region: Final[Region]
    __code__: Final[CodeType]
    __globals__: Final[dict[str, Any]]
    __closure__: Final[tuple[Any, ...] | None]
    def __new__(cls, fn: Callable[..., Any], region: Region, named: Any = ..., /) -> Any: ...
    def __init__(self, *args: Any) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: Any, owner: type | None = None, /) -> Any: ...

class ProbeKind(enum.IntEnum):
    """What a question of a probe compares."""

    BYTE_AT_RESULT = 0
    """The byte at the address that the function returns, plus the argument."""
    RESULT_OF_1 = 1
    """The function's result of one byte, for the argument."""
    RESULT_OF_4 = 4
    RESULT_OF_8 = 8
    THREAD_LOCAL = 16
    """Eight bytes of the thread-local variable at the offset `argument`; there is no function."""

class Probe:
    """True when called, if C functions report what they did when it was made.

    Each question is (a `ProbeKind`, address of the function, argument).
    """

    answers: Final[tuple[int, ...]]
    def __new__(cls, questions: tuple[tuple[ProbeKind, int, int], ...], /) -> Probe: ...
    def __call__(self) -> bool: ...

def set_thread_local_symbol(library: str, name: str, /) -> bool:
    """Name the loaded library's thread-local variable that probes read; is there one of that name?"""

def set_overrides(count_modes: int, get: int, set: int, /) -> None:
    """The addresses of torch's functions about a thread's overrides: how many modes, are they off, turn them off."""

def are_overrides_off() -> bool:
    """Are torch's overrides off because guards are checked, or a call is traced, while modes are active?"""

def set_miss_handler(handler: _MissHandler | None, /) -> None:
    """What is asked on a cache miss, hook off: the entry to run now, None to run the frame's own bytecode, or what the
    call raises."""

class CodePolicy(enum.IntEnum):
    """What the hook does with the frames of a code object."""

    TRACE = 0
    SKIP = 1
    """Do not trace this frame; its callees may be."""
    RUN_RECURSIVELY = 2
    """Run it, and all that it calls, without the hook."""

def set_code_policy(code: CodeType, policy: CodePolicy, /) -> None: ...
def mark_resumed(code: CodeType, first: int, end: int, calls: bool, /) -> None:
    """Frames of the code go on after a graph break; they run as ordinary Python where the program would notice that an
    object ends, which generated code would keep longer.

    Args:
        code: whose frames.
        first: the first of the arguments that stay on the stack, where a call may take them.
        end: behind the last of them.
        calls: the first two arguments are a function, which the frame calls, and its arguments in a tuple.
    """

def tail_call(function: Callable[..., Any], /, *args: Any) -> Any:
    """What an entry's target returns to have the call made when its own frame, and all it keeps alive, is gone."""

def call_traced(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """What an entry's target leaves to Python: traced for the region that the target runs for, whichever made it."""

def get_code_policy(code: CodeType, /) -> int: ...
def current_region() -> Region | None: ...
def hook_installed() -> bool: ...
def show_as(cls: type, name: str, function: Any, /) -> None:
    """Who reads the class finds the function under that name; the type's slot calls what it called before."""

def set_metaclass(cls: type, metaclass: type, /) -> None:
    """`cls.__class__ = metaclass` for a class whose metaclass is `type`, which CPython refuses to change."""

def call_held(cls: type, shown: Any, /) -> None:
    """A call of an instance of the class calls what it holds as `_stator_call`; its `__call__` reads as `shown`."""

def set_symbolic_flag(namespace: object, name: str, /) -> None:
    """While `namespace[name]` is True, calls of instances of classes given to `call_held()` call what these show.

    The namespace is a dict, or an object that has one: a `threading.local` has one of each thread.
    """

def set_other_tracer(ask: Callable[[], Any] | None, /) -> Callable[[], Any] | None:
    """While another evaluation function is installed and `ask()` is not None, compiled callables call what they wrap.

    Returns what was set before.
    """

def configure_tensors(
    *,
    tensor: object,
    impl: int,
    vtable: int,
    autograd: int,
    extra: int,
    dims: int,
    kind: int,
    keys: int,
    kind_mask: int,
    flags_mask: int,
    flags: int,
    requires_grad: int,
) -> None:
    """Tell where a TensorImpl keeps its metadata; see stator.pytorch.tensors.reader.  A zero vtable: nowhere."""

def read_tensor(tensor: object, /) -> tuple[int, bool, tuple[int, ...], tuple[int, ...]] | None:
    """(keys, requires_grad, sizes, strides) as the core reads them, or None if it cannot."""

def plan_keeping(tensors: tuple[object, ...], itemsizes: tuple[int, ...], /) -> bytes | None:
    """What `keep_contents` needs to know of tensors in the CPU's memory; None if it cannot keep them.

    They are tensors indeed, and their elements have these sizes.
    """

def keep_contents(plan: bytes, tensors: tuple[object, ...], /) -> bytes | None:
    """What lies in the memory of the tensors, in order; None if they are large or not like those of the plan."""

def put_contents_back(plan: bytes, tensors: tuple[object, ...], kept: bytes, /) -> bool:
    """Write into the tensors what was kept; False, and nothing is written, if they are not what they were.

    Their version counters stay as they are.
    """

def call_within(depth: int, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The result of the call, which may nest only so many others (from 3.12 on: of Python functions)."""

def call_with_tracing(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """The result of the call, which profilers and debuggers see, as they do not see what the miss handler calls."""

def calls_left() -> int:
    """How many calls the program may nest below the frame that is being traced."""

def called_from(
    frames: tuple[tuple[FunctionType, int, tuple[int, ...]], ...],
    values: tuple[Any, ...],
    function: Callable[..., Any],
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """The call, as if made by frames that stand at an instruction each.

    Args:
        frames: outermost first: the function, the byte offset of the instruction, and the slots that have a value.
        values: those of all these slots, in their order.
        function: what is called with the other arguments.

    Raises:
        TypeError: `frames` and `values` are not of this form.
    """

def raise_unchanged(exception: BaseException | tuple[BaseException], /) -> NoReturn:
    """Raises its argument and touches nothing of it: no ``__context__``, no traceback entry of its own.

    An exception in a tuple comes up in the next handler, without an entry for the handler's frame, as one does in
    CPython 3.11 that was raised by making another, which C code had set.
    """

def apply(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any] = ..., /) -> Any:
    """``function(*args, **kwargs)``, which gets this very tuple if it is a C function that takes one."""

def set_layout(s: _AnySet, /) -> tuple[Any, ...]:
    """A byte for each place of the set's table (``.`` free, ``x`` taken, ``o`` deleted), then the elements in order."""

def set_table(s: _AnySet, /) -> tuple[bytes, int, tuple[int, ...]]:
    """All there is to know of the set's table but its elements: the places, the finger, the hashes in order."""

def set_finger(s: _AnySet, /) -> int:
    """The place where the set's next ``pop()`` begins to look."""

def fill_table(s: Any, table: tuple[bytes, int, tuple[int, ...]], elements: Sequence[Any], /) -> Any:
    """Give an empty set a table as `set_table` describes it, with these elements in order; returns the set.

    A finger of -1 leaves the set's where it is.

    Raises:
        ValueError: the set is not empty, or no set has such a table.
    """

def dict_hashes(d: dict[Any, Any], /) -> tuple[int, ...]:
    """The hashes that the dict has stored with its keys, in order."""

def write_dict(
    d: Any, deleted: Sequence[Any], keys: Sequence[Any], items: Sequence[Any], hashes: Sequence[int | None], /
) -> Any:
    """Delete keys of a dict, then assign items in order, without hashing or comparing keys; returns the dict.

    A key is one of the dict's if it is the same object; where an object has not been one, it is added. A hash of None
    is computed.

    Raises:
        KeyError: what is to be deleted is no key of the dict.
        ValueError: there are not as many keys as items and hashes, or a hash is -1.
    """

def is_generic_access(slot: object, /) -> bool:
    """Whether it wraps `PyObject_GenericGetAttr` or `PyObject_GenericSetAttr`, under any type's name."""

def has_buffer(type: type, /) -> bool:
    """Whether instances of the type let others read their bytes: it fills `bf_getbuffer`."""

def exchange(iterator: Iterator[Any], other: Iterator[Any], /) -> None:
    """Each of two iterators of one builtin type goes on where the other would have.

    Raises:
        TypeError: they are not two iterators of one builtin type, or such iterators may have attributes.
    """

def runs_its_code(function: object, /) -> bool:
    """Whether it is a Python function whose calls run its code: C code can replace that (PyFunction_SetVectorcall)."""

def finished_frame(
    code: CodeType, globals: dict[str, Any], offset: int, back: FrameType | None, variables: Any, /
) -> FrameType:
    """A frame that has ended at the instruction at this byte offset, called by ``back``.

    ``variables``: those of a function by name, in cells where they are shared; the namespace of other code; or None.
    """

def set_revalidation_minimum(operations: int, /) -> int:
    """Programs of fewer operations are walked at each call; returns what was set before."""

def calls_begun() -> int:
    """How many calls of compiled callables have begun."""

def set_force_eager(force: bool, /) -> bool:
    """Compiled callables run what they wrap as it is; returns what was set before."""

def watch_stance(namespace: dict[str, object], reader: Callable[[], bool], /) -> None:
    """Compiled callables run what they wrap as it is while ``reader()`` is True.

    It is asked again when the namespace has changed.
    """

def set_strict(strict: bool, /) -> bool:
    """Re-check every guard decision with the reference program (STATOR_STRICT=1); returns what was set before."""
