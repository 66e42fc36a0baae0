"""From a cache miss to a cache entry: trace the frame, write its residual program, compile its guards."""

from __future__ import annotations

import contextlib
import sys
import time
from traceback import FrameSummary
from types import CodeType
from typing import TYPE_CHECKING, Any

from stator import errors
from stator._core import UNBOUND, CodePolicy, Entry, call_seen, set_code_policy
from stator.bytecode import ContinuationError, is_suspendable
from stator.bytecode.continuation import is_continuation
from stator.codegen.ir_check import Traced, check_ir
from stator.codegen.program import Program, Residual
from stator.compiler import mark_models  # noqa: F401  the models of the marks
from stator.compiler.region import ALONE, LOG, failure_of, forget_all
from stator.controls import resets
from stator.controls.breaks import break_is_error
from stator.guards.guard import Predicate
from stator.guards.program import compile_guards
from stator.guards.source import LocalSource
from stator.host import collector
from stator.interp import matching  # noqa: F401  imported before a trace may look at sys.modules
from stator.interp.policy import (
    decided_by_function,
    is_called_back,
    is_machinery,
    other_at_work,
    runs_whole,
    worth_tracing,
)
from stator.interp.trace import Trace
from stator.marks.stance import current_stance, is_first_call
from stator.models.exceptions import exception_code  # noqa: F401
from stator.models.functions.generator import is_left_open
from stator.models.functions.module import is_undermined
from stator.report.stats import STATS, BreakRecord
from stator.space.signals import BreakHere, DoFirst, NearRecursionLimit, Restart
from stator.space.value import Raised, Unsupported

if TYPE_CHECKING:
    from stator.compiler.region import CompileRegion
    from stator.config import Config
    from stator.guards.base import Guard
    from stator.space.interfaces import Frame

#: resumed frames that call each other: each break resumes them all
_LONGEST_CHAIN = 50
_MAX_RESTARTS = 4


def on_miss(region: Any, function: Any, code: CodeType, args: list[Any]) -> Entry | None:
    """The frame hook found no entry for this frame: make one, or None to run the frame as it is this time."""
    compile_region: CompileRegion | None = region.owner
    if is_undermined():
        return None
    if compile_region is None:
        return None  # a region that no compile() call has made
    other = other_at_work()
    if other is not None:
        return compile_region.leave_to(other, code)
    if compile_region.root is None:
        compile_region.root = code
    if runs_whole(code):
        set_code_policy(code, CodePolicy.RUN_RECURSIVELY)
        if code is compile_region.root:
            compile_region.give_up(code, "nothing inside of it is traced", [])
        return ALONE
    if code is not compile_region.root and is_called_back(args) and not is_continuation(code):
        set_code_policy(code, CodePolicy.RUN_RECURSIVELY)
        return ALONE
    whole = decided_by_function(code, function)
    if whole is not None:
        return compile_region.keep_decision(code, whole)
    if code is not compile_region.root and not worth_tracing(code):
        alone = is_machinery(code)
        set_code_policy(code, CodePolicy.RUN_RECURSIVELY if alone else CodePolicy.SKIP)
        return ALONE if alone else None
    if not compile_region.fullgraph:
        import bytecode  # noqa: F401  here, and not at the first break: the trace may look at sys.modules
    if compile_region.runs_eagerly(code):
        return None
    stance = current_stance()
    if stance in ("force_eager", "eager_on_recompile"):
        return None
    if stance == "fail_on_recompile":
        raise RuntimeError(_recompile_text(compile_region, function, code, args))
    resets.follow(forget_all)
    config = compile_region.config
    if config.disable:
        return None
    if stance != "default" and not compile_region.is_first and is_first_call(compile_region.state_of(code), code, args):
        if stance == "eager_then_compile":
            return None
        compile_region = compile_region.for_first_calls()
    elif not compile_region.may_compile(code, function, args, config):
        return None
    if config.show_tracer:
        return call_seen(_compile, compile_region, config, function, code, args)  # type: ignore[no-any-return]
    return _compile(compile_region, config, function, code, args)


def _recompile_text(compile_region: CompileRegion, function: Any, code: CodeType, args: list[Any]) -> str:
    text = (
        "Detected recompile when torch.compile stance is 'fail_on_recompile'. "
        f"filename: '{code.co_filename}', function name: '{code.co_name}', line number: {code.co_firstlineno}"
    )
    entries = compile_region.region.entries(code)
    return f"{text}\n    the last guard failure: {failure_of(entries[-1], function, args)}" if entries else text


def _dynamic(compile_region: CompileRegion, config: Config) -> bool | None:
    """Whether sizes are symbolic from the start (None: once they have varied)."""
    return True if compile_region.dynamic is None and not config.assume_static_by_default else compile_region.dynamic


def _compile(
    compile_region: CompileRegion, config: Config, function: Any, code: CodeType, args: list[Any]
) -> Entry | None:
    started, limit = time.perf_counter(), sys.getrecursionlimit()
    backend_before = STATS.backend_seconds
    stop_at, reason = compile_region.forced_stop(code)
    guards: list[Guard] = []
    try:
        restarts, done = 0, set[str]()
        while restarts < _MAX_RESTARTS:
            trace = Trace(
                config,
                region_state=compile_region.state_of(code),
                dynamic=_dynamic(compile_region, config),
                stop_at=stop_at,
                stop_reason=reason,
            )
            trace.compile_region = compile_region  # type: ignore[attr-defined]
            trace.done_first = done
            first = None
            try:
                return _attempt(compile_region, trace, function, code, args)
            except NearRecursionLimit:
                compile_region.runs_out(code)
                return None
            except DoFirst as e:
                first = e
            except Restart as e:
                restarts += 1
                stop_at, reason = e.step, e.brk
                guards = list(trace.guards.values())
                _refuse_if_fullgraph(compile_region, trace, e.brk)
                if e.brk.whole:
                    return compile_region.give_up(code, e.brk.reason, guards)
            finally:
                trace.close()
            if first is not None:
                done.add(first.what)
                with contextlib.suppress(Exception):
                    call_seen(first.action)
        return compile_region.give_up(code, "it does not trace the same way twice", guards)
    finally:
        if sys.getrecursionlimit() != limit:  # a module that the tracer or a backend has imported raises it
            sys.setrecursionlimit(limit)
        STATS.add_seconds(time.perf_counter() - started, STATS.backend_seconds - backend_before)


def _attempt(
    compile_region: CompileRegion, trace: Trace, function: Any, code: CodeType, args: list[Any]
) -> Entry | None:
    program = Program(trace, compile_region.region.call, code.co_name)
    if is_suspendable(code):
        return compile_region.give_up(code, "it is a generator or coroutine", [])
    if is_continuation(code) and (held := [i for i, arg in enumerate(args) if is_left_open(arg)]):
        # A resumed frame is the last to hold it: when it is let go of is not traced.
        sources = [LocalSource(i, code.co_varnames[i]) for i in held]
        left_open: list[Guard] = [Predicate((source,), is_left_open, f"{source.expr()} is open") for source in sources]
        return compile_region.give_up(code, "it holds a generator that is suspended in a `try` or a `with`", left_open)
    try:
        residual, broke = _run(compile_region, trace, program, trace.root(function, code, args, UNBOUND))
    except ContinuationError as e:
        return compile_region.give_up(code, f"it cannot be resumed after the break ({e})", list(trace.guards.values()))
    except Unsupported as e:
        # What must leave the frame cannot be made by generated code.
        _refuse_if_fullgraph(compile_region, trace, e.brk)
        for callee in trace.overlong:
            compile_region.give_up(callee, e.brk.reason, [])
        return compile_region.give_up(code, e.brk.reason, list(trace.guards.values()))
    except errors.StatorError as e:
        if not trace.config.suppress_errors or compile_region.fullgraph:
            raise
        LOG.warning("%s runs as ordinary Python (suppress_errors): %s", code.co_qualname, e)
        return compile_region.give_up(
            code, f"{type(e).__name__}, which suppress_errors hides", list(trace.guards.values())
        )
    except Exception as e:
        # A defect of ours, or too deep a structure: nothing has been executed yet.
        failure = trace.host_error(e)
        _refuse_if_fullgraph(compile_region, trace, failure.brk)
        return compile_region.give_up(code, failure.brk.reason, list(trace.guards.values()))
    return _entry(compile_region, trace, code, function, residual, broke)


def _run(compile_region: CompileRegion, trace: Trace, program: Program, frame: Frame) -> tuple[Residual, Any]:
    """Execute the frame symbolically and write what remains of it; with the break that ended it, if one did."""
    try:
        with collector.paused():
            result = frame.run()
            trace.end(frame)
    except Raised as e:
        return program.raises(e.value), None
    except BreakHere as e:
        _refuse_if_fullgraph(compile_region, trace, e.brk)
        compile_region.forced_hit |= trace.forced(e.brk)
        if e.brk.whole or trace.unresumable is not None:
            raise Unsupported(e.brk if e.brk.whole else trace.unresumable) from None
        if len(e.states) > _LONGEST_CHAIN and is_continuation(frame.code):
            reason = "the calls in it nest too deep to resume them at each break"
            raise Unsupported(errors.FrameGivenUp(frame.code.co_qualname, reason)) from None
        frames = [state.frame for state in e.states]
        trace.note_dropped(frames)
        if trace.recorder is not None:
            trace.recorder.resumed = frames
        return program.breaks(e.states), e.brk
    return program.returns(result), None


def _entry(
    compile_region: CompileRegion, trace: Trace, code: CodeType, function: Any, residual: Residual, broke: Any
) -> Entry:
    guards = list(trace.guards.values())
    if trace.recorder is not None:
        guards = trace.recorder.guards_first() + guards + trace.recorder.guards_last()
    with collector.paused():
        program = compile_guards(guards, residual.outputs)
    if trace.config.check_ir:
        check_ir(Traced(code, program, residual))
    entry = Entry(program, residual.function, residual, trace.prologue)
    entry.depth = trace.deepest
    entry.drops_arguments = trace.drops_arguments
    compile_region.add(code, entry)
    STATS.frame(trace, residual, len(guards))
    if broke is not None:
        STATS.broke(BreakRecord(broke.code, broke.reason, where_of(trace)))
    return entry


def where_of(trace: Trace) -> str:
    """`file.py:12` of the innermost frame at a break."""
    if not trace.break_stack:
        return "?"
    code, line = trace.break_stack[0]
    return f"{code.co_filename}:{line}"


def user_stack(trace: Trace) -> list[FrameSummary]:
    """The user's stack at a break, outermost first."""
    return [FrameSummary(code.co_filename, line, code.co_name) for code, line in reversed(trace.break_stack)]


def _refuse_if_fullgraph(compile_region: CompileRegion, trace: Trace, brk: Any) -> None:
    if isinstance(brk, errors.ForcedBreak):
        return
    if compile_region.fullgraph or break_is_error(trace):
        error = brk.error(where=where_of(trace), user_stack=user_stack(trace))
        raise error from trace.host_failure
