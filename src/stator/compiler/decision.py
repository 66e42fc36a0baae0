"""What is decided of a function without tracing it, kept as an entry of its code."""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING

from stator._core import Entry
from stator.guards.guard import Predicate
from stator.guards.program import compile_guards
from stator.guards.source import FunctionSource
from stator.interp.policy import is_left_alone, is_run_as_it_is

if TYPE_CHECKING:
    from stator.compiler.region import CompileRegion

__all__ = ["keep_decision"]


def keep_decision(compile_region: CompileRegion, code: CodeType, alone: bool) -> Entry:
    """Frames of a code that many functions share run as ordinary Python: what was decided for one of the functions
    is an entry for all of which the same is decided, so that it is not asked for in Python at each call."""
    ask, text = (is_left_alone, "is left alone") if alone else (is_run_as_it_is, "is run as it is")
    source = FunctionSource()
    entry = Entry(compile_guards([Predicate((source,), ask, f"{source.expr()} {text}")]), None)
    entry.alone = alone
    compile_region.add(code, entry)
    return entry
