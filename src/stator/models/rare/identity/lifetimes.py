"""What shows when objects die: garbage collection, reference counts."""

from __future__ import annotations

import gc
import sys

from stator import errors
from stator.guards.guard import Predicate
from stator.guards.source import ConstSource
from stator.host import collector
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import bool_value
from stator.space.protocol import builtin, register
from stator.space.signals import DoFirst
from stator.space.space import Space
from stator.space.value import Constant, Unsupported, Value

#: what is done before a trace in which the program calls the collector
_COLLECTED = "gc.collect"
_OLDEST = Constant(2)
_ATOMS = (int, bool, float, complex, str, bytes, type(None))


def _shows(host: Host) -> None:
    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Unsupported(errors.LifetimeObserved(f"{host.__module__}.{host.__name__}"))

    register(host, model)


for _host in (gc.get_objects, gc.get_referrers, gc.get_count, sys.getrefcount):
    _shows(_host)


class Collected(Value):
    """The result of `gc.collect()`, which nobody may look at: what is garbage differs from call to call."""

    __slots__ = ()

    def __init__(self) -> None:
        self.cls = int
        self.source = None

    def describe(self) -> str:
        return "how much the garbage collector has found"

    def reconstruct(self, writer: Writer) -> str:
        raise Unsupported(errors.LifetimeObserved("the result of gc.collect"))


def _reports_nothing(module: Host) -> bool:
    return not module.get_debug()


def _nobody_watches(module: Host) -> bool:
    return not collector.is_watched()


def _check_unobserved(space: Space) -> None:
    """That a collection calls nothing of the program's, and keeps nothing for it: as long as it does not."""
    if space.trace.effects.is_mutated(space.existing(gc.callbacks).force()) or not _nobody_watches(gc):
        raise Unsupported(errors.LifetimeObserved("gc.collect, which calls gc.callbacks"))
    space.trace.guard(Predicate((ConstSource(gc, "gc"),), _nobody_watches, "no gc.callbacks of the program"))
    if not _reports_nothing(gc):
        raise Unsupported(errors.LifetimeObserved("gc.collect with gc.set_debug"))
    space.trace.guard(Predicate((ConstSource(gc, "gc"),), _reports_nothing, "no gc.set_debug"))


def _collect_first() -> None:
    """The prologue of an entry whose program collects."""
    if collector.is_watched() or gc.get_debug():
        return  # who looks on shall see the program's own collections only; the guards fail
    gc.collect()


@builtin(gc.collect)
def collect(space: Space, generation: Value = _OLDEST) -> Value:
    """Garbage that exists is collected before the trace and, by a prologue, before each call: it may go at any time.

    The call itself is made when the graph has run, on what it lets go of; the values of what the trace has made go now.
    """
    trace = space.trace
    if space.known(generation) != 2:
        raise Unsupported(errors.LifetimeObserved("gc.collect of young objects"))
    _check_unobserved(space)
    if trace.root.dropped_by(trace.running()):
        # The frame keeps them until the trace is over; what their death does, the program may look at at once.
        raise Unsupported(errors.LifetimeObserved("gc.collect after letting go of an argument"))
    if _COLLECTED not in trace.done_first:
        raise DoFirst(_COLLECTED, gc.collect)
    trace.finalizers.prologue = _collect_first
    trace.defer(collector.collect_unseen, [])
    gc.collect()
    return Collected()


@builtin(gc.is_tracked)
def is_tracked(space: Space, value: Value, /) -> Value:
    """Of new objects, where it does not depend on whether the collector has run."""
    value = value.force()
    answer = None if value.source is not None else _is_tracked(value)
    if answer is None:
        raise Unsupported(errors.LifetimeObserved("gc.is_tracked"))
    return bool_value(answer)


def _is_tracked(value: Value) -> bool | None:
    value = value.force()
    if value.constant:
        return False if value.cls in _ATOMS else None
    if value.source is not None:
        return None
    if value.cls in (list, set):
        return True
    if value.cls in (tuple, dict) and any(_is_tracked(part) for part in value.held()):
        return True
    return None
