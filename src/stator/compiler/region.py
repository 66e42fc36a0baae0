"""One `stator.compile()` call: its settings, its cache entries, and its recompile policy."""

from __future__ import annotations

import dataclasses
import logging
import sys
import weakref
from collections.abc import Iterable, Iterator
from itertools import islice
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, TypeAlias

from stator import errors
from stator._core import CodePolicy, Entry, Region, calls_left, set_code_policy
from stator.bytecode import is_suspendable
from stator.bytecode.by_code import ByCode
from stator.bytecode.continuation import is_continuation, unvaried, waiting_codes
from stator.compiler import pool
from stator.compiler.pool import Pool
from stator.compiler.reasons import called_code, is_long_loop, nearest, of_loop, program_of, reason_for, remedy_for
from stator.controls.dynamo_config import under_torchs
from stator.guards.program import compile_guards
from stator.interp.policy import runs_whole, worth_tracing
from stator.report import messages
from stator.report.events import EVENTS, Broke
from stator.space.host_types import Host, HostCallable

if TYPE_CHECKING:
    from traceback import FrameSummary

    from stator.config import Config
    from stator.errors import Break
    from stator.guards.base import Guard
    from stator.report.stats import RecompileRecord

#: what a backend was asked for by: the `backend`, `mode` and options of `compile()`
Asked: TypeAlias = tuple[Host, str | None, dict[str, Host]]

#: all compile regions alive, so that `reset()` can clear them
REGIONS: weakref.WeakSet[CompileRegion] = weakref.WeakSet()

#: how often the code of calls inside of a frame that has reached the limit is compiled: for a case, and for any number
_MOST_INSIDE = 2
#: how many cases are told apart of a frame that computes nothing
_MOST_AROUND = 4

#: under which the state of a code has the lines of loops whose number of rounds varies, and whether that has been told
_LOOPS = "loops that vary"

#: options of which torch does not heed its own values where a break is an error
_KEPT_BY_FULLGRAPH = frozenset({"capture_scalar_outputs"})


class CompileRegion:
    """The owner of a `_core.Region`: what torch calls an isolated compile region.

    Args:
        config: settings in force for this compile() call.
        backend: callable `(gm, example_inputs) -> callable`, or None without torch.
        asked: what the backend was asked for by: the `backend`, `mode` and options of `compile()`.
        remake: compiles another callable like this: given it, `config`, `asked` and `settings()`.
        resolve: gives the backend that is asked for so.
        given: the names of the options that the compile() call has set itself.
        isolated: keeps to itself, instead of sharing entries with compile() calls of equal settings.
    """

    def __init__(
        self,
        config: Config,
        *,
        backend: Host,
        fullgraph: bool,
        dynamic: Host,
        name: str | None,
        asked: Asked,
        remake: HostCallable,
        resolve: HostCallable,
        given: frozenset[str] = frozenset(),
        isolated: bool = False,
    ) -> None:
        self.own_config = config.replace(trace_step_limit=config.fullgraph_step_limit) if fullgraph else config
        self.given = given
        self.backend = backend
        self.fullgraph = fullgraph
        self.dynamic = dynamic
        self.name = name
        self.asked = asked
        self.remake = remake
        self.resolve = resolve
        self.region = Region(self)
        #: the code of the frame that compile() was asked for: traced whatever file it is in
        self.root: CodeType | None = None
        self.forced: dict[CodeType | None, int] = {}
        self.forced_hit = False
        #: whether this is another compile region's for first calls
        self.is_first = False
        self._first_calls: CompileRegion | None = None
        self._states = ByCode[dict[object, Any]]()
        #: codes that are left to Python, as calls of them have too many cases
        self._over_limit = ByCode["FrameSummary | None"]()
        #: with so many calls left to the thread, or fewer, they have been found to meet the recursion limit
        self._too_deep = ByCode[int]()
        self._compiled = ByCode[bool]()
        REGIONS.add(self)
        self.pool = Pool(isolated=True) if isolated else pool.pool_of(config, asked, backend=backend, **self._policy())
        self.pool.join(self)

    @property
    def config(self) -> Config:
        """The settings now: torch's own are asked each time."""
        return under_torchs(self.own_config, self.given | _KEPT_BY_FULLGRAPH if self.fullgraph else self.given)

    def copy(self) -> CompileRegion:
        """A compile region with the same settings, and nothing compiled."""
        return self._like(self.backend, self.asked)

    def for_first_calls(self) -> CompileRegion:
        """What compiles first calls under the stance aot_eager_then_compile: the same, but for the backend."""
        if self._first_calls is None:
            asked = ("aot_eager", None, dict[str, Host]())
            made = self._like(self.resolve(*asked), asked)
            made.is_first = True
            self._first_calls = made
        return self._first_calls

    def _like(self, backend: Host, asked: Asked) -> CompileRegion:
        """A compile region with the same settings, and perhaps another backend."""
        made_by: dict[str, Host] = {"remake": self.remake, "resolve": self.resolve}
        return CompileRegion(self.own_config, backend=backend, asked=asked, **made_by, **self.settings())

    def settings(self) -> dict[str, Host]:
        """The keywords of this compile region besides the backend, to make another."""
        return {**self._policy(), "name": self.name, "isolated": self.pool.isolated}

    def _policy(self) -> dict[str, Any]:
        """What decides, besides the options and the backend, how a frame is compiled."""
        return {"fullgraph": self.fullgraph, "dynamic": self.dynamic, "given": self.given}

    def clear(self) -> None:
        """Forget everything compiled."""
        self.region.clear()
        self.root = None
        self._states.clear()
        self._over_limit.clear()
        self._too_deep.clear()
        self._compiled.clear()
        self._first_calls = None

    def state_of(self, code: CodeType) -> dict[object, Any]:
        """What earlier calls of this code left for the next ones, here."""
        return self._states.of(unvaried(code), lambda code: {})

    def forced_stop(self, code: CodeType) -> tuple[int, Break | None]:
        """The step at which a test wants this trace to break, and the reason; (0, None) ordinarily."""
        step = self.forced.pop(None, 0)
        return (step, errors.ForcedBreak(step)) if step else (0, None)

    # -- recompiling ------------------------------------------------------------------------------------------------

    def may_compile(self, code: CodeType, called: CodeType, function: Host, args: list[Host], config: Config) -> bool:
        """Whether another entry may be made for the code; notes why the ones there are did not fit."""
        if self.runs_eagerly(code, function, args):
            return False
        entries = self._compiled_for(code, called)
        if not entries:
            return True
        entry = nearest(entries, function, args)
        reason = reason_for(entry, code, function, args)
        loop = of_loop(entry, function, args, reason)
        varies = loop is not None and self._has_varied(code, reason.line)
        reason = loop if loop is not None and varies else reason
        if config.error_on_recompile:
            raise errors.RecompileError(str(messages.not_again(reason)))
        left = [called, *islice(waiting_codes(code, args), 1, None)]
        for name, limit, count in self._limits(code, called, config):
            if count >= limit:
                if not reason.hint:
                    reason = dataclasses.replace(reason, hint=remedy_for(entry, function, args))
                self._limit_reached(config, (name, limit), reason)
                self._leave(left, messages.compiled_function(reason))
                return False
        around = self.left_around() if len(entries) >= _MOST_INSIDE else None
        if around is not None:
            self._leave(left, around)
            return False
        EVENTS.recompiled(reason)
        if varies and is_long_loop(entry, reason.line) and self._is_news(code, reason.line):
            messages.LOG.warning("%s", messages.recompiled(reason))
        return True

    def _has_varied(self, code: CodeType, line: str) -> bool:
        """Whether the loop of this line, which has another number of rounds now, had another one before too."""
        met: dict[str, bool] = self.state_of(code).setdefault(_LOOPS, {})
        known = line in met
        met.setdefault(line, False)
        return known

    def _is_news(self, code: CodeType, line: str) -> bool:
        """Whether nobody has been told yet that a long loop of this line is compiled for each number of rounds."""
        told: dict[str, bool] = self.state_of(code)[_LOOPS]
        if told[line] or logging.getLogger("stator.recompiles").isEnabledFor(logging.INFO):
            return False
        told[line] = True
        return True

    def adopt(self, code: CodeType, called: CodeType, function: Host, args: list[Host], config: Config) -> Entry | None:
        """An entry that a compile() call with equal settings has made, and that fits: it is one of this call's too."""
        if len(self._compiled_for(code, called)) >= config.recompile_limit:
            return None
        entry = self.pool.entry_for(code, function, args, config, beside=self)
        if entry is not None:
            self._compiled.keep(code, True)
            self.region.add(code, entry)
        return entry

    def fitting(self, code: CodeType, function: Host, args: list[Host], config: Config) -> Entry | None:
        """An entry of this call's that has come to fit, as something has been done meanwhile."""
        return next((entry for entry in self.region.entries(code) if pool.fits(entry, function, args, config)), None)

    def runs_eagerly(self, code: CodeType, function: Host, args: list[Host]) -> bool:
        """Whether a call that no entry fits is left to Python."""
        if self._over_limit and unvaried(called_code(code, function, args)) in self._over_limit:
            return True
        return calls_left() <= self._depth(code)

    def _limits(self, code: CodeType, called: CodeType, config: Config) -> Iterator[tuple[str, int, int]]:
        """The limits that there are: name, value, entries that count."""
        yield "recompile_limit", config.recompile_limit, len(self._compiled_for(code, called))
        if config.accumulated_recompile_limit:
            count = len({entry for each in list(REGIONS) for entry in each._entries_for(code, called)})
            yield "accumulated_recompile_limit", config.accumulated_recompile_limit, count

    def _limit_reached(self, config: Config, limit: tuple[str, int], reason: RecompileRecord) -> None:
        refused = self.fullgraph or config.fail_on_recompile_limit_hit
        brk = errors.RecompileLimit(reason.function, limit[1], reason.reason).advising(reason.hint)
        told = messages.limit_reached(reason, limit, brk.hint, refused=refused)
        if refused:
            raise errors.RecompileLimitError(str(told))
        EVENTS.broke(Broke(brk, messages.about(messages.compiled_function(reason))[0], tuple(told.stack)))
        messages.LOG.warning("%s", told)

    def _leave(self, codes: Iterable[CodeType], cause: FrameSummary | None) -> None:
        """Leave frames to Python: what has changed for the outermost has changed for those that it goes on with.

        The cause is the function that has reached the limit, if one has.
        """
        for code in codes:
            self._over_limit.keep(unvaried(code), cause)

    def left_around(self) -> FrameSummary | None:
        """The function that has reached the limit in which the frame is called: what varies there may be met here."""
        frame: FrameType | None = sys._getframe() if self._over_limit else None
        while frame is not None:
            cause = self._over_limit.find(unvaried(frame.f_code))
            if cause is not None:
                return cause
            frame = frame.f_back
        return None

    def runs_out(self, code: CodeType) -> None:
        """A trace of the code nests deeper than the program may here."""
        self._too_deep.keep(unvaried(code), max(calls_left(), self._depth(code)))

    def _depth(self, code: CodeType) -> int:
        found = self._too_deep.find(unvaried(code))
        return -1 if found is None else found

    def add(self, code: CodeType, entry: Entry, called: CodeType | None = None) -> None:
        """Put a new entry first in the cache of the code, of which it is a case; or one of what that goes on with."""
        self._compiled.keep(code, True)
        program_of(entry).called = unvaried(called or code)
        entry.program.strict = self.own_config.strict
        self.region.add(code, entry)
        if entry.target is not None:
            self.pool.keep(self)

    def give_up(
        self,
        code: CodeType,
        why: str | Break,
        guards: list[Guard],
        stack: tuple[FrameSummary, ...] = (),
        called: CodeType | None = None,
    ) -> Entry | None:
        """This frame runs as ordinary Python, for arguments like these; its callees may still be traced."""
        cause = None if isinstance(why, str) else why
        brk = errors.FrameGivenUp(code.co_qualname, why if isinstance(why, str) else why.reason)
        where, at = messages.about(messages.definition(code))
        stack = stack or at
        if self.fullgraph:
            raise brk.error(where=where, user_stack=stack)
        EVENTS.broke(Broke(brk, where, stack, cause, self.left_around()))
        if is_suspendable(code):
            set_code_policy(code, CodePolicy.SKIP)
            return None
        return self._left_to_python(code, guards, called or code)

    def run_as_it_is(
        self, code: CodeType, called: CodeType, guards: list[Guard], *, computes_nothing: bool = False
    ) -> Entry | None:
        """Frames like this one run as ordinary Python around what is compiled, and count as nothing compiled.

        After a few cases in which it computes nothing (each text that a progress bar shows is one) all of the code do.
        """
        around: set[Entry] = self.state_of(called).setdefault("around", set())
        if computes_nothing and len(around) >= _MOST_AROUND:
            self._leave([called], None)
            return None
        entry = self._left_to_python(code, guards, called)
        around.add(entry)
        return entry

    def runs_for_finalizer(self, code: CodeType, cls: type) -> None:
        """The core runs a resumed frame as it is, since it lets go of an object of this class; called each time."""
        told = self.state_of(code).setdefault("run for finalizers", set())
        if cls not in told:
            told.add(cls)
            where, at = messages.about(messages.resumption(code))
            cause = errors.LifetimeObserved(f"letting go of a {cls.__qualname__}, whose end runs code,")
            brk = errors.FrameGivenUp(code.co_qualname, cause.reason)
            EVENTS.broke(Broke(brk, where, at, cause))

    def _left_to_python(self, code: CodeType, guards: list[Guard], called: CodeType) -> Entry:
        entry = Entry(compile_guards(guards), None)
        entry.alone = self.leaves_whole(code)
        self.add(code, entry, called)
        return entry

    def _compiled_for(self, code: CodeType, called: CodeType) -> list[Entry]:
        """The entries for such calls, but for those that `run_as_it_is` has made."""
        around = self.state_of(called).get("around", ())
        return [entry for entry in self._entries_for(code, called) if entry not in around]

    def _entries_for(self, code: CodeType, called: CodeType) -> list[Entry]:
        """The entries of the code for calls that it goes on with to the other."""
        origin = unvaried(called)
        return [entry for entry in self.region.entries(code) if program_of(entry).called is origin]

    @staticmethod
    def leaves_whole(code: CodeType) -> bool:
        """Whether a call of the code that is not one graph runs as ordinary Python, with all that it calls."""
        return runs_whole(code)

    def leave_to(self, other: str, code: CodeType) -> Entry | None:
        """This once, the frame runs as ordinary Python, and so does all that it calls: another tracer is at work.

        The rest of a frame that has been resumed may outlast the other's work, and so may its calls: they are asked
        each for itself.
        """
        brk = errors.FrameGivenUp(code.co_qualname, other)
        seen = self.state_of(code).setdefault("left to", set())
        if other not in seen and (code is self.root or worth_tracing(code)):
            seen.add(other)
            where, at = messages.about(messages.definition(code))
            EVENTS.broke(Broke(brk, where, at))
        return None if is_continuation(code) else ALONE

    def codes(self) -> list[CodeType]:
        """The code objects that have entries here."""
        return self._compiled.codes()

    def entries(self) -> set[Entry]:
        """All entries here, those of others among them that fit."""
        return {entry for code in self.codes() for entry in self.region.entries(code)}


def _alone() -> Entry:
    entry = Entry(compile_guards([]), None)
    entry.alone = True
    return entry


#: leaves a frame and all that it calls alone. It is put into no cache: whether another tracer is at work is asked at
#: each call that no entry fits
ALONE = _alone()


def forget_all() -> None:
    """Forget what every `compile()` call has compiled."""
    for compile_region in list(REGIONS):
        compile_region.clear()
    pool.forget_all()
