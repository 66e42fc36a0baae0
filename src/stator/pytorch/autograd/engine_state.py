"""What one trace has to do with the autograd engine: who accumulates gradients, and which hooks they meet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.guards.guard import Predicate
from stator.pytorch.autograd.onlookers import is_all_known, only_accumulate

if TYPE_CHECKING:
    from stator.guards.base import Guard
    from stator.pytorch.autograd.handles import TracedHook
    from stator.pytorch.traced import TracedTensor

__all__ = ["EngineState"]


class EngineState:
    """The engine, as far as one trace has run it."""

    def __init__(self) -> None:
        #: the instructions at which gradients were computed
        self.backward_steps: list[int] = []
        #: the leaves that accumulate gradients, and those whose gradients meet hooks that the trace knows
        self.accumulating: dict[TracedTensor, None] = {}
        self.hooked_leaves: dict[TracedTensor, None] = {}
        #: new tensors that are no leaves and accumulate gradients all the same
        self.retaining: dict[TracedTensor, None] = {}
        #: the hooks that the graph registers on what it makes
        self.traced_hooks: list[TracedHook] = []

    def guards(self) -> list[Guard]:
        """With the gradients of leaves is done what was done with them in the trace."""
        found: list[Guard] = []
        for leaves, check in ((self.accumulating, only_accumulate), (self.hooked_leaves, is_all_known)):
            waiting = [leaf.source for leaf in leaves if leaf.source is not None]
            if waiting:
                text = f"gradients of {', '.join(s.expr() for s in waiting[:3])} … are accumulated as they were"
                found.append(Predicate(tuple(waiting), check, text))
        return found
