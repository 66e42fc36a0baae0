"""What a program enters that no graph may end in: a level of forward-mode differentiation, hooks on what is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from stator.pytorch import internals
from stator.space.signals import Restart

if TYPE_CHECKING:
    from collections.abc import Callable

    from stator.errors import Break
    from stator.pytorch.types import Args, Function
    from stator.space.interfaces import Trace

__all__ = ["WithinGraph"]


class WithinGraph:
    """One of them, in `State.open` while it is entered: a trace that ends in it is made again, and breaks before it.

    What is entered in the graph is entered while tracing too.

    Args:
        refusal: the break where it is entered.
        leave: what leaves it: in the graph, and when the trace has been given up.
    """

    def __init__(self, trace: Trace, refusal: Break, leave: Callable[[], object]) -> None:
        self.trace = trace
        self.step = trace.steps
        self.refusal = refusal
        self.leave_for_real = leave

    @staticmethod
    def may_be_entered(trace: Trace) -> bool:
        """Whether the graph is the one that the program runs, not that of a function within it."""
        nodes = trace.recorder.nodes
        return nodes.graph is nodes.whole and not internals.are_transforms_active()

    def enter(self, function: Function, args: Args = ()) -> object:
        """The program enters it, by this call; returns what the call gives while tracing."""
        state = self.trace.recorder.state
        result: object = state.perform(function, list(args), {})
        state.open.append(self)
        self._note(function, args)
        return result

    def leave(self) -> None:
        """The program leaves it, which it has entered last."""
        state = self.trace.recorder.state
        state.perform(self.leave_for_real, [], {})
        state.open.pop()
        self._note(self.leave_for_real, ())

    def _note(self, function: Function, args: Args) -> None:
        self.trace.recorder.state.add_node(function, args)
        self.trace.mutation_count += 1

    @property
    def lazy(self) -> NoReturn:
        """The trace is over, and code is generated that would enter it again."""
        self.leaving()

    def leaving(self) -> NoReturn:
        """The trace is over."""
        raise Restart(self.step, self.refusal)
