"""A finished trace becomes a cache entry."""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING

from stator._core import Entry
from stator.codegen.ir_check import Traced, check_ir
from stator.guards.program import compile_guards
from stator.interp.loops import Loops
from stator.models.stdlib.critical_section import CriticalSection
from stator.report.stats import STATS

if TYPE_CHECKING:
    from stator.codegen.residual import Residual
    from stator.compiler.region import CompileRegion
    from stator.interp.trace import Trace


def make_entry(
    compile_region: CompileRegion, trace: Trace, code: CodeType, called: CodeType, residual: Residual
) -> Entry:
    """Compile the guards of the trace, and put them with its residual program into the cache."""
    guards = list(trace.guards.values())
    if trace.recorder is not None:
        guards = trace.recorder.guards_first() + guards + trace.recorder.guards_last()
    program = compile_guards(guards, residual.outputs)
    program.loops = trace.extension(Loops).all()
    trace.extension(CriticalSection).guards.program = program
    if trace.config.check_ir:
        check_ir(Traced(code, program, residual))
    entry = Entry(program, residual.function, residual, trace.finalizers.prologue)
    entry.depth = trace.calls.deepest
    entry.drops_arguments, entry.released = trace.root.drops_arguments, trace.root.released
    compile_region.add(code, entry, called)
    STATS.frame(trace, residual, len(guards))
    return entry
