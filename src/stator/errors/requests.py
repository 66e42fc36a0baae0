"""SB03xx: breaks somebody asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from stator.errors.catalogue import Break


@dataclass(frozen=True)
class ExplicitBreak(Break):
    """The program called `stator.graph_break`."""

    code: ClassVar[str] = "SB0301"
    title: ClassVar[str] = "graph_break() was called"
    template: ClassVar[str] = "graph_break() was called: {message}"
    hint: ClassVar[str] = "remove the call to capture one graph"
    message: str = "no message"


@dataclass(frozen=True)
class DisabledFunction(Break):
    """The function called is marked as one that must not be traced."""

    code: ClassVar[str] = "SB0302"
    title: ClassVar[str] = "call of a disabled function"
    template: ClassVar[str] = "call of {function}, which is disabled: {why}"
    hint: ClassVar[str] = "remove stator.disable or torch.compiler.disable from the function to trace it"
    function: str
    why: str = "no reason given"


@dataclass(frozen=True)
class ForcedBreak(Break):
    """A test asked for a break at this instruction (`stator.testing.break_everywhere`)."""

    code: ClassVar[str] = "SB0303"
    title: ClassVar[str] = "break forced by a test"
    template: ClassVar[str] = "break forced at instruction {index}"
    hint: ClassVar[str] = "only stator.testing makes such breaks"
    index: int


@dataclass(frozen=True)
class DebuggerCall(Break):
    """`breakpoint()` or another debugger is called: it needs the real frame."""

    code: ClassVar[str] = "SB0304"
    title: ClassVar[str] = "call of a debugger"
    template: ClassVar[str] = "{function} starts a debugger"
    hint: ClassVar[str] = "it works across the break; remove it to capture one graph"
    function: str
