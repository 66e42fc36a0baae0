"""The hooks that leaves had before the trace: called with the gradients that the graph computes, as the engine does."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.autograd.context_value import is_none
from stator.pytorch.autograd.obstacles import name_of
from stator.pytorch.autograd.onlookers import is_all_known, only_accumulate
from stator.pytorch.tensors.tensor import TensorValue

if TYPE_CHECKING:
    from stator.pytorch.types import Nested
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["LeafHooks", "hooks_in_the_way", "past_hooks"]


def past_hooks(outputs: Nested, inputs: list[torch.Tensor], *args: Nested, **kwargs: Nested) -> Nested:
    """`torch.autograd.grad`, which calls no hooks of the leaves: they are called with its results (on real tensors)."""
    hooked = [(leaf, hooks) for leaf in inputs if (hooks := internals.gradient_hooks(leaf))]
    for leaf, _ in hooked:
        _set_hooks(leaf, None)
    try:
        return torch.autograd.grad(outputs, inputs, *args, **kwargs)
    finally:
        for leaf, hooks in hooked:
            _set_hooks(leaf, hooks)


_set_hooks = internals.gradient_hooks.__self__.__set__


class LeafHooks:
    """The hooks of one leaf: on its gradient, and on what it has accumulated."""

    def __init__(self, space: Space, leaf: TensorValue) -> None:
        self.on_gradient = _hooks(space, leaf, "_backward_hooks")
        self.on_accumulated = _hooks(space, leaf, "_post_accumulate_grad_hooks")

    def passed(self, space: Space, gradient: Value) -> Value | None:
        """The gradient after the hooks; None if one of them gives what the engine might refuse."""
        for hook in self.on_gradient:
            if is_none(gradient):
                return None
            made = space.call(hook, [gradient], {}).force()
            if is_none(made):
                continue
            if not _is_like(made, gradient):
                return None
            gradient = made
        return gradient

    def accumulated(self, space: Space, leaf: TensorValue) -> bool:
        """Call the hooks on the leaf that has accumulated a gradient; False if one gives what the engine refuses."""
        return all(is_none(space.call(hook, [leaf], {}).force()) for hook in self.on_accumulated)


def _is_like(made: Value, gradient: Value) -> bool:
    if not isinstance(made, TensorValue) or not isinstance(gradient, TensorValue):
        return False
    same = (made.cls, made.dtype, made.device) == (gradient.cls, gradient.dtype, gradient.device)
    return same and bool(made.shape == gradient.shape)


def _hooks(space: Space, leaf: TensorValue, name: str) -> list[Value]:
    """The hooks in a dict that is an attribute of the leaf, or None."""
    table = space.getattr(leaf, name).force()
    return [] if is_none(table) else list(space.iterate(space.call(space.getattr(table, "values"), [], {})))


def hooks_in_the_way(
    space: Space, leaves: list[TensorValue], hooks: dict[TensorValue, LeafHooks], create_graph: bool
) -> str:
    """Why it is not known what is done with the gradients of leaves, or nothing, which is guarded when the trace ends.

    The hooks that are found are put into `hooks`.
    """
    tracked = space.trace.recorder.tracked
    for leaf in leaves:
        if leaf.host is None:
            continue
        if only_accumulate(leaf.host):
            tracked.engine.accumulating[leaf] = None
        elif create_graph or not is_all_known(leaf.host):
            return f"more is done with the gradient of {name_of(leaf)} than to accumulate it in `.grad`"
        else:
            hooks[leaf] = LeafHooks(space, leaf)
            tracked.engine.hooked_leaves[leaf] = None
    return ""
