"""Assumptions that are mostly true: a graph that rests on one may fail without the program being wrong.

It is undone then, and ordinary Python executes the frame again. That is right, and slow where it happens often: a frame
of which graphs have failed a few times is traced again, and assumes no such thing any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.guards.guard import Predicate
from stator.guards.source import ConstSource

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Nested
    from stator.space.interfaces import Trace

__all__ = ["Reliance", "Reliances", "is_doubted", "reliance"]

#: how often a frame runs twice before the assumption is made no more
_MOST_FAILURES = 3


class Reliance:
    """Counts how often graphs have failed that rest on an assumption.

    Args:
        assumption: the assumption, as a sentence.
        state: where the next trace of the frame finds that there were too many; None where they do not count.
    """

    __slots__ = ("assumption", "failures", "state")

    def __init__(self, assumption: str, state: dict[object, object] | None) -> None:
        self.assumption = assumption
        self.failures = 0
        self.state = state

    def failed(self) -> None:
        """A graph has failed that may rest on it."""
        self.failures += 1
        if self.state is not None and self.failures >= _MOST_FAILURES:
            self.state[self.assumption] = True

    def judged(self, verdict: object) -> bool:
        """What a program has found of the assumption when its graph had run."""
        if not verdict:
            self.failed()
        return bool(verdict)

    def holds(self, _: object) -> bool:
        """Whether the graph is worth running before ordinary Python."""
        return self.failures < _MOST_FAILURES


def reliance(trace: Trace, assumption: str) -> Reliance:
    """A trace makes the assumption, guarded by that it holds often enough; with `fullgraph` there is no other way."""
    counts = not (trace.compile_region.fullgraph or trace.config.error_on_recompile)
    made = Reliance(assumption, trace.region_state if counts else None)
    if counts:
        trace.guard(Predicate((ConstSource(torch, "torch"),), made.holds, assumption))
    return made


def is_doubted(trace: Trace, assumption: str) -> bool:
    """Whether graphs of the frame that rest on the assumption have failed too often."""
    return assumption in trace.region_state


class Reliances:
    """The assumptions without which the graph of one trace might not fail."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.made: dict[str, Reliance] = {}

    def rely(self, assumption: str) -> Reliance:
        """Make an assumption, of which the trace makes one however often it rests on it."""
        if assumption not in self.made:
            self.made[assumption] = reliance(self.trace, assumption)
        return self.made[assumption]

    def counting_failures(self, compiled: Function) -> Function:
        """The compiled graph, whose failures count."""
        made = tuple(self.made.values())
        if not made:
            return compiled

        def run(*args: object) -> Nested:
            try:
                return compiled(*args)
            except Exception:
                for each in made:
                    each.failed()
                raise

        return run
