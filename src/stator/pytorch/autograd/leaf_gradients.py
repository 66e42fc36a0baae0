"""The gradients of leaves, as one operation of the graph, and what is done with each as the engine does it."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch.autograd.accumulation import Accumulation
from stator.pytorch.autograd.engine_run import FAILS, refusal, run
from stator.pytorch.autograd.leaf_hooks import LeafHooks, past_hooks
from stator.pytorch.state.global_state import grad_mode
from stator.pytorch.tensors.lowering import Call, lower_call
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import FALSE, TRUE
from stator.space.signals import Restart

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["LeafGradients"]


class LeafGradients:
    """The gradients of one run.

    Args:
        leaves: the leaves that accumulate them.
        hooks: the hooks of some of them.
        retaining: tensors that are no leaves and accumulate theirs all the same.
    """

    def __init__(
        self, space: Space, leaves: list[TensorValue], hooks: dict[TensorValue, LeafHooks], retaining: list[TensorValue]
    ) -> None:
        self.space = space
        self.leaves = leaves
        self.hooks = hooks
        self.retaining = retaining

    def record(self, ends: list[Value], retain_graph: Value, create_graph: bool, host: Host) -> None:
        """Record the run, and what is done with what it gives; the graph ends before it if that cannot be recorded.

        Args:
            ends: the tensors that gradients are computed of, and the gradients that come to them.
            host: the function that the program has called.
        """
        brk = refusal(host, FAILS)
        space, recorder, grad = self.space, self.space.trace.recorder, torch.autograd.grad
        options = {"retain_graph": retain_graph, "create_graph": TRUE if create_graph else FALSE, "allow_unused": TRUE}
        arguments = [ends[0], space.new_tuple([*self.leaves, *self.retaining]), ends[1]]
        target = past_hooks if any(hooks.on_gradient for hooks in self.hooks.values()) else grad
        call = lower_call(space, Call(grad, "call_function", target), arguments, options)
        order = _Order(self.hooks)
        with order:
            made = [value.force() for value in space.unpack(run(recorder, call, brk))]
        gradients = iter(made)
        leaves = order.sorted([(leaf, next(gradients)) for leaf in self.leaves])
        with nullcontext() if create_graph else grad_mode(recorder.state.change, False):
            accumulation = Accumulation(space, call.operands, create_graph)
            done = all(accumulation.retain(tensor, next(gradients)) for tensor in self.retaining)
            done = done and all(self.accumulate(accumulation, leaf, new) for leaf, new in leaves)
        if not done:
            raise Restart(recorder.tracked.engine.backward_steps[0], brk)

    def accumulate(self, accumulation: Accumulation, leaf: TensorValue, new: Value) -> bool:
        """Let the gradient of a leaf pass its hooks, and accumulate it; False if it is not known what that does."""
        hooks = self.hooks.get(leaf)
        if hooks is None:
            return accumulation.add(leaf, new)
        passed = hooks.passed(self.space, new)
        return (
            passed is not None
            and accumulation.add(leaf, passed, held=passed is not new)
            and hooks.accumulated(self.space, leaf)
        )


class _Order:
    """A context in which the engine runs on fake tensors: notes in which order gradients come to leaves with hooks."""

    def __init__(self, leaves: dict[TensorValue, LeafHooks]) -> None:
        self.leaves = leaves
        self.seen: list[TensorValue] = []
        self.handles: list[Any] = []

    def __enter__(self) -> None:
        self.handles = [leaf.fake.register_hook(partial(self.note, leaf)) for leaf in self.leaves]

    def __exit__(self, *exc: object) -> None:
        for handle in self.handles:
            handle.remove()

    def note(self, leaf: TensorValue, gradient: torch.Tensor) -> None:
        """The gradient of a leaf has come."""
        self.seen.append(leaf)

    def sorted(self, pairs: list[tuple[TensorValue, Value]]) -> list[tuple[TensorValue, Value]]:
        """Leaves and gradients, those with hooks in that order, after the others."""
        places = {leaf: i for i, leaf in enumerate(self.seen)}
        return sorted(pairs, key=lambda pair: places.get(pair[0], -1))
