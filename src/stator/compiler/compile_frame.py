"""From a frame to a cache entry: trace it, write its residual program, compile its guards."""

from __future__ import annotations

import contextlib
import logging
import sys
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from stator import errors
from stator._core import Entry, call_with_tracing
from stator.bytecode.continuation import ContinuationError, is_continuation
from stator.codegen.program import Program
from stator.codegen.residual import Residual
from stator.compiler.entry import make_entry
from stator.controls.breaks import break_is_error
from stator.host import collector
from stator.interp.library_calls import computes_nothing, is_apart
from stator.interp.trace import Trace
from stator.report.events import EVENTS, Broke, Compiled
from stator.space.signals import BreakHere, DoFirst, NearRecursionLimit, Restart, RunsAsItIs
from stator.space.value import Raised, Unsupported

if TYPE_CHECKING:
    from stator.compiler.region import CompileRegion
    from stator.config import Config
    from stator.errors import Break
    from stator.space.interfaces import Frame

#: resumed frames that call each other: each break resumes them all
_LONGEST_CHAIN = 50
_MAX_RESTARTS = 4

_LOG = logging.getLogger("stator")


class FrameCompiler:
    """One frame on its way to an entry.

    Args:
        compile_region: the compile() call that the entry is for.
        config: the settings in force.
        function: the function that the frame executes, with its code and arguments.
        called: the code that the program calls, where this one only goes on with the call.
    """

    def __init__(
        self,
        compile_region: CompileRegion,
        config: Config,
        function: FunctionType,
        code: CodeType,
        called: CodeType,
        args: list[object],
    ) -> None:
        self.compile_region = compile_region
        self.config = config
        self.function = function
        self.code = code
        self.called = called
        self.args = args
        self.outcome = Compiled(code, function, args)

    def compile(self) -> Entry | None:
        """Make the entry, and put it into the cache; None to run the frame as it is this time."""
        limit = sys.getrecursionlimit()
        # Listeners are told inside of the pause: what they note lives as long as what the trace has made.
        with collector.paused(), EVENTS.compiling(self.outcome) as outcome:
            try:
                outcome.entry = self._restarting()
            finally:
                if sys.getrecursionlimit() != limit:  # a module that the tracer or a backend has imported raises it
                    sys.setrecursionlimit(limit)
        return outcome.entry

    def _restarting(self) -> Entry | None:
        """Trace, and trace again with what the trace before has found out."""
        region, code = self.compile_region, self.code
        stop_at, reason = region.forced_stop(code)
        done_first = set[object]()
        restarts = 0
        met = None
        while True:
            trace = self._new_trace(done_first, stop_at, reason)
            trace.breaks.met_before = met
            EVENTS.tracing(trace)
            first = None
            try:
                return self._attempt(trace)
            except NearRecursionLimit:
                region.runs_out(code)
                return None
            except RunsAsItIs as e:
                return region.run_as_it_is(
                    code, self.called, list(trace.guards.values()), computes_nothing=e.computes_nothing
                )
            except DoFirst as e:
                first = e
            except Restart as e:
                restarts += 1
                stop_at, reason = e.step, e.brk
                met = (e.brk, trace.breaks.stack) if e.inside else None
                if e.brk.whole or restarts == _MAX_RESTARTS:
                    self._refuse_if_fullgraph(trace, e.brk)
                    return self._give_up(trace, e.brk if e.brk.whole else "it does not trace the same way twice")
            finally:
                if self.outcome.lines is not None:
                    self.outcome.lines = trace.stops.lines()
                trace.close()
            if first is not None:
                done_first.add(first.what)
                if first.action is not None:
                    with contextlib.suppress(Exception):
                        call_with_tracing(first.action)
                    found = region.fitting(code, self.function, self.args, self.config)
                    if found is not None:
                        return found

    def _new_trace(self, done_first: set[object], stop_at: int, reason: Break | None) -> Trace:
        region, dynamic = self.compile_region, self.compile_region.dynamic
        trace = Trace(
            self.config,
            region,
            region_state=region.pool.state_of(self.called),
            dynamic=True if dynamic is None and not self.config.assume_static_by_default else dynamic,
            done_first=done_first,
            stop_at=stop_at,
            stop_reason=reason,
        )
        if self.outcome.lines is not None:
            trace.stops.note_lines()
        return trace

    def _attempt(self, trace: Trace) -> Entry | None:
        region, code = self.compile_region, self.code
        try:
            frame = trace.root.begin(trace, self.function, code, self.args)
            residual, broke = self._run(trace, Program(trace, code.co_name), frame)
        except ContinuationError as e:
            return self._give_up(trace, f"it cannot be resumed after the break ({e})")
        except Unsupported as e:
            # What must leave the frame cannot be made by generated code.
            self._refuse_if_fullgraph(trace, e.brk)
            for callee in trace.stops.overlong:
                region.give_up(callee, e.brk.reason, [])
            return self._give_up(trace, e.brk)
        except errors.StatorError as e:
            if not self.config.suppress_errors or region.fullgraph:
                raise
            _LOG.warning("%s runs as ordinary Python (suppress_errors): %s", code.co_qualname, e)
            return self._give_up(trace, f"{type(e).__name__}, which suppress_errors hides")
        except Exception as e:
            # A defect of ours, or too deep a structure: nothing has been executed yet.
            failure = trace.breaks.host_error(e, trace.frame)
            self._refuse_if_fullgraph(trace, failure.brk)
            return self._give_up(trace, failure.brk)
        entry = make_entry(region, trace, code, self.called, residual)
        if broke is not None:
            trace.breaks.note_resumed(broke)
            where, stack = trace.breaks.where(), trace.breaks.user_stack()
            EVENTS.broke(Broke(broke, where, stack, within=region.left_around()))
        return entry

    def _run(self, trace: Trace, program: Program, frame: Frame) -> tuple[Residual, Break | None]:
        """Execute the frame symbolically and write what remains of it; with the break that ended it, if one did."""
        try:
            result = frame.run()
            if self._is_inner() and computes_nothing(frame):
                raise RunsAsItIs(computes_nothing=True)
            program.note_variables(frame)
            trace.root.released = trace.root.released_by([frame])
            trace.end(frame)
        except Raised as e:
            return program.raises(e.value), None
        except BreakHere as e:
            self._refuse_if_fullgraph(trace, e.brk)
            self.compile_region.forced_hit |= isinstance(e.brk, errors.ForcedBreak)
            if self._is_around(frame):
                raise RunsAsItIs(computes_nothing=True) from None
            unresumable = trace.root.unresumable
            if e.brk.whole or unresumable is not None:
                raise Unsupported(e.brk if e.brk.whole else unresumable) from None
            if self.compile_region.leaves_whole(self.code):
                raise Unsupported(e.brk) from None
            if len(e.states) > _LONGEST_CHAIN and is_continuation(frame.code):
                reason = "the calls in it nest too deep to resume them at each break"
                raise Unsupported(errors.FrameGivenUp(frame.code.co_qualname, reason)) from None
            frames = [state.frame for state in e.states]
            trace.root.drops_arguments = trace.root.dropped_by(frames)
            trace.root.released = trace.root.released_by(frames, e.states[0].stack)
            if trace.recorder is not None:
                trace.recorder.resumed = frames
            return program.breaks(e.states), e.brk
        return program.returns(result), None

    def _is_around(self, frame: Frame) -> bool:
        """Whether the frame is of a call that was left to Python as a whole (SB0122): nobody is told of it again."""
        return self._is_inner() and is_apart(frame)

    def _is_inner(self) -> bool:
        """Whether Python has called the function, around what is compiled. Code written for one that computes nothing
        would do what Python does."""
        return self.code is not self.compile_region.root and not is_continuation(self.code)

    def _give_up(self, trace: Trace, why: str | Break) -> Entry | None:
        """Frames for which hold the same guards run as ordinary Python."""
        guards, stack = list(trace.guards.values()), trace.breaks.user_stack()
        return self.compile_region.give_up(self.code, why, guards, stack, self.called)

    def _refuse_if_fullgraph(self, trace: Trace, brk: Break) -> None:
        if isinstance(brk, errors.ForcedBreak):
            return
        if self.compile_region.fullgraph or break_is_error(trace.calls.codes, trace.namespaces.known_global):
            breaks = trace.breaks
            raise brk.error(where=breaks.where(), user_stack=breaks.user_stack()) from breaks.host_failure
