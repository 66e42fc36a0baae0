"""Objects whose end the program may notice: they end in the trace where they would in eager, or it breaks there."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from stator import errors
from stator.space.host_types import Host
from stator.space.identity.reachability import reaches, stands_for
from stator.space.value import NotKnown, Raised, Unsupported

if TYPE_CHECKING:
    from stator.space.interfaces import Trace


class Finalizers:
    """What runs when objects end, or may run: suspended generators, `__del__`, callbacks of weak references."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        #: generators that are suspended where closing them runs code of the program's
        self.suspended_in_finally: weakref.WeakSet[Any] = weakref.WeakSet()
        #: generators that the program has let go of
        self.pending_close: list[Any] = []
        #: what the program has made weak references to that call back: as long as they are there themselves
        self.calls_back: tuple[Host, ...] = ()
        #: what is called before the guards of the entry are checked: the collection that the program calls for
        self.prologue: Callable[[], object] | None = None

    def close_later(self, generator: Any) -> None:
        """The program has let go of a generator that is suspended: it is closed before the next instruction."""
        self.pending_close.append(generator)
        self._trace.stops.soon()

    def close_pending(self) -> None:
        """Close the generators that the program has let go of."""
        while self.pending_close:
            generator = self.pending_close.pop(0)
            try:
                generator.tp_del(self._trace.space)
            except (Raised, Unsupported, NotKnown):  # what is raised goes to the hook for unraisable errors
                self.pending_close.append(generator)
                raise Unsupported(errors.LifetimeObserved("a generator that fails when it is closed")) from None

    def settle(self, can_break: bool) -> None:
        """What the instruction before has let go of ends before this one; `can_break`: whether the trace can."""
        trace = self._trace
        if self.pending_close:
            frame = trace.frame
            frame.index -= 1
            try:
                self.close_pending()
            finally:
                frame.index += 1
        for host in trace.effects.released():
            if any(stands_for(value, host) for frame in trace.running() for value in frame.stack):
                trace.stops.soon()  # not yet
            elif not reaches(trace, host):
                if can_break:
                    raise Unsupported(errors.LifetimeObserved("letting go of an object that notices its end"))
                trace.stops.soon()
