"""One trace: everything that is known about one symbolic execution of one frame. Nothing here is global."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from stator.interp.branches import assumed
from stator.interp.break_report import BreakReport, users_line
from stator.interp.finalizers import Finalizers
from stator.interp.inlined_calls import InlinedCalls
from stator.interp.root_frame import RootFrame
from stator.interp.side_effects import Effects
from stator.interp.stops import Stops
from stator.models.classes.class_changes import ClassChanges
from stator.models.standard_space import StandardSpace
from stator.space.globals_ import Namespaces
from stator.space.value import Value

if TYPE_CHECKING:
    from types import CodeType

    from stator.config import Config
    from stator.errors import Break
    from stator.guards.base import Guard
    from stator.space import interfaces

T = TypeVar("T")

#: called when a trace begins; the higher layers hang their parts on it
TRACE_HOOKS: list[Callable[[Trace], None]] = []

#: how many items taken out of iterators a guard is worth, by the time that it takes to make, compile and check, and the
#: memory
_GUARD_COST = 10


class Trace:
    """The state of one symbolic execution. What belongs to one idea of it is a part: a class of its own.

    Args:
        config: the settings in force.
        compile_region: the compile() call that the trace is made for.
        region_state: what earlier traces of the same code in the same region left for this one (dynamic dimensions …).
        dynamic: whether sizes are symbolic from the start (None: once they have varied), or what is said of inputs.
        done_first: what was done for real before this trace began.
        stop_at: the step before which the trace must end, with the reason `stop_reason`.
    """

    def __init__(
        self,
        config: Config,
        compile_region: interfaces.CompileRegion,
        *,
        region_state: dict[object, Any],
        dynamic: Any,
        done_first: set[object],
        stop_at: int,
        stop_reason: Break | None,
    ) -> None:
        self.config = config
        self.compile_region = compile_region
        self.region_state = region_state
        self.dynamic = dynamic
        self.done_first = done_first
        self.guards: dict[tuple[object, ...], Guard] = {}
        self.effects = Effects()
        self.mutation_count = 0
        self.steps = 0
        self.stops = Stops(self, stop_at, stop_reason)
        self.finalizers = Finalizers(self)
        self.breaks = BreakReport(config.verbose)
        self.calls = InlinedCalls(self)
        self.classes = ClassChanges()
        self.space = StandardSpace(self)
        self.namespaces = Namespaces(self.space)
        self.root = RootFrame(self.space)
        #: the innermost frame being executed
        self.frame: Any = None
        #: what records the graph, where the PyTorch layer is there
        self.recorder: Any = None
        self._extensions: dict[type, Any] = {}
        for hook in TRACE_HOOKS:
            hook(self)

    def close(self) -> None:
        """The trace is over: give back what higher layers have taken (modes, global state)."""
        if self.recorder is not None:
            self.recorder.close()
        self.space.release()
        self.classes.close()
        self.namespaces.close()
        self.root.close()
        self._extensions.clear()
        self.recorder = self.frame = None
        self.finalizers.calls_back = ()
        self.effects = Effects()

    # -- what the trace assumes and does ----------------------------------------------------------------------------

    def guard(self, guard: Guard) -> None:
        """Assume something about the frame; equal guards are kept once."""
        key = guard.key
        if key not in self.guards:
            if guard.where is None:
                guard.where = self.line()
            self.guards[key] = guard
            self.stops.count_item(_GUARD_COST)

    def line(self) -> tuple[CodeType, int] | None:
        """The program's own line that is being executed; None where there is none."""
        return None if self.frame is None else users_line(self.frame)

    def defer(self, function: Callable[..., object], args: list[Value], kwargs: dict[str, Value] | None = None) -> None:
        """Perform `function(*args, **kwargs)` after the graph, in order: it acts on the world outside the program."""
        self.mutation_count += 1
        self.effects.deferred(function, args, kwargs or {})

    def extension(self, cls: type[T]) -> T:
        """The one object of this class that belongs to this trace, made as `cls(trace)` when first asked for."""
        found = self._extensions.get(cls)
        if found is None:
            found = self._extensions[cls] = cls(self)  # type: ignore[call-arg]
        return found

    def assumed(self, value: Value) -> bool | None:
        """A truth value that is not known, if it may be assumed: all that the call being made does with it is to
        decide the next branch."""
        return assumed(self.frame, value)

    # -- frames -----------------------------------------------------------------------------------------------------

    def running(self) -> list[interfaces.Frame]:
        """The frames being executed, innermost first."""
        frames: list[interfaces.Frame] = []
        frame = self.frame
        while frame is not None:
            frames.append(frame)
            frame = frame.parent
        return frames

    def end(self, frame: interfaces.Frame) -> None:
        """The frame being traced has returned, and lets go of its variables."""
        if self.finalizers.suspended_in_finally or not frame.afterlife.shown:
            frame.locals, frame.cells = {}, {}
        frame.stack.clear()
        self.frame = frame
        self.finalizers.close_pending()
        self.frame = None
