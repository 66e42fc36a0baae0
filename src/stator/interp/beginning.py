"""Frames that are not traced, for what they are or what they hold when they begin."""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING

from stator.bytecode import is_suspendable
from stator.bytecode.continuation import is_continuation
from stator.guards.guard import Predicate
from stator.guards.source import LocalSource
from stator.models.functions.generator import is_left_open
from stator.space.host_types import Host

if TYPE_CHECKING:
    from stator.guards.base import Guard


def refusal(code: CodeType, args: list[Host]) -> tuple[str, list[Guard]] | None:
    """Why the frame is left to Python, and what a guard says of other frames for which that holds; None to trace it."""
    if is_suspendable(code):
        return "it is a generator or coroutine", []
    if is_continuation(code) and (held := [i for i, arg in enumerate(args) if is_left_open(arg)]):
        # A resumed frame is the last to hold it: when it is let go of is not traced.
        sources = [LocalSource(i, code.co_varnames[i]) for i in held]
        still_open: list[Guard] = [Predicate((source,), is_left_open, f"{source.expr()} is open") for source in sources]
        return "it holds a generator that is suspended in a `try` or a `with`", still_open
    return None
