"""SB04xx: what a frame does that a trace cannot; SB05xx: limits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stator.errors.catalogue import Break


@dataclass(frozen=True)
class UnsupportedOpcode(Break):
    """An instruction the interpreter does not handle."""

    code: ClassVar[str] = "SB0401"
    title: ClassVar[str] = "instruction that is not handled"
    template: ClassVar[str] = "instruction {opcode}"
    hint: ClassVar[str] = "the statement runs as ordinary Python"
    opcode: str


@dataclass(frozen=True)
class SuspendedCoroutine(Break):
    """A coroutine waits for something only an event loop can bring."""

    code: ClassVar[str] = "SB0402"
    title: ClassVar[str] = "coroutine that needs an event loop"
    template: ClassVar[str] = "{name} suspends, and only an event loop can resume it"
    hint: ClassVar[str] = "await outside; compile the functions the coroutine calls"
    name: str


@dataclass(frozen=True)
class ImportWithSideEffects(Break):
    """A module is imported for the first time, and could see that what the function did before is not done yet."""

    code: ClassVar[str] = "SB0403"
    title: ClassVar[str] = "first import of a module"
    template: ClassVar[str] = "import of '{module}', which has not been imported yet"
    hint: ClassVar[str] = "import it at the top of the file"
    module: str


@dataclass(frozen=True)
class FrameGivenUp(Break):
    """A frame cannot be traced or resumed and runs as ordinary Python; its callees may still be traced."""

    code: ClassVar[str] = "SB0404"
    title: ClassVar[str] = "frame given up"
    template: ClassVar[str] = "{function} runs as ordinary Python: {why}"
    hint: ClassVar[str] = "the reason names what cannot be traced, or resumed after a break"
    function: str
    why: str


@dataclass(frozen=True)
class HostErrorWhileTracing(Break):
    """Stator itself failed on this frame; `suppress_errors` let the program go on."""

    code: ClassVar[str] = "SB0405"
    title: ClassVar[str] = "Stator failed while tracing"
    template: ClassVar[str] = "Stator failed while tracing {function}: {failure}"
    hint: ClassVar[str] = "a defect of Stator: please report it, with the traceback that STATOR_VERBOSE=1 shows"
    function: str
    failure: str


@dataclass(frozen=True)
class RecompileLimit(Break):
    """A code object has been compiled as often as allowed."""

    code: ClassVar[str] = "SB0501"
    title: ClassVar[str] = "recompile limit reached"
    template: ClassVar[str] = (
        "{function} was compiled {limit} times and now runs as ordinary Python; last failed: {guard}"
    )
    hint: ClassVar[str] = "make what the guard names constant, mark it dynamic, or raise recompile_limit"
    function: str
    limit: int
    guard: str


@dataclass(frozen=True)
class TraceTooLong(Break):
    """A trace executed more instructions than allowed."""

    code: ClassVar[str] = "SB0502"
    title: ClassVar[str] = "trace too long"
    template: ClassVar[str] = "the trace reached {limit} instructions"
    hint: ClassVar[str] = "a long loop is unrolled: move it out of the compiled function, or raise trace_step_limit"
    whole: ClassVar[bool] = True
    limit: int


@dataclass(frozen=True)
class SequenceTooLong(Break):
    """A sequence has more items than a trace can hold one by one."""

    code: ClassVar[str] = "SB0504"
    title: ClassVar[str] = "sequence too long"
    template: ClassVar[str] = "a sequence of {count} items is used item by item"
    hint: ClassVar[str] = "use a tensor, or make the sequence outside the compiled function and pass it on unread"
    count: int


@dataclass(frozen=True)
class InlineTooDeep(Break):
    """Inlined calls are nested deeper than allowed."""

    code: ClassVar[str] = "SB0503"
    title: ClassVar[str] = "calls nested too deeply"
    template: ClassVar[str] = "call of {function} at depth {depth}"
    hint: ClassVar[str] = "unbounded recursion ends here as it would in Python; else raise inline_depth_limit"
    function: str
    depth: int
