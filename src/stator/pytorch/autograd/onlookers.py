"""Who looks on while gradients are computed: hooks of the program and of libraries, and torch's own checks.

Gradients that a graph computes pass none of them. So none may be there, which is looked at in each call.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals

if TYPE_CHECKING:
    from torch.autograd.graph import Node

__all__ = ["is_all_known", "is_engine_unwatched", "is_unhooked", "only_accumulate", "who_watches_the_engine"]

_Base: Any = internals.TensorBase
_dtype = vars(_Base)["dtype"].__get__
_gradient_dtype = vars(_Base)["grad_dtype"].__get__
_retains_gradient = vars(_Base)["retains_grad"].__get__

_MARK = "stator asks who holds this"


def is_engine_unwatched() -> bool:
    """Whether nobody sees what is saved for backward, and nobody else runs backward."""
    return not who_watches_the_engine()


def who_watches_the_engine() -> str:
    """Who sees what is saved for backward, or runs backward in the engine's place; or nobody."""
    if internals.top_saved_tensors_hooks(True) is not None:
        return "hooks see what is saved for it (torch.autograd.graph.saved_tensors_hooks)"
    compiled = sys.modules.get("torch._dynamo.compiled_autograd")
    if compiled is not None and compiled.compiled_autograd_enabled:
        return "compiled autograd runs in its place"
    return ""


def is_unhooked(tensor: torch.Tensor) -> bool:
    """Whether a gradient that is asked for meets no hooks at the tensor."""
    with internals.DisableTorchFunctionSubclass():
        return internals.gradient_hooks(tensor) is None and not _retains_gradient(tensor)


def only_accumulate(*leaves: torch.Tensor) -> bool:
    """Whether all that happens to the gradient of each leaf is that it is accumulated in `.grad`."""
    with internals.DisableTorchFunctionSubclass():
        return all(map(_has_no_hooks, leaves)) and is_all_known(*leaves)


def is_all_known(*leaves: torch.Tensor) -> bool:
    """Whether nothing happens to the gradient of each leaf but what its hooks do, and that it is accumulated.

    DistributedDataParallel and its like put hooks on the node that accumulates, and hold it. That node holds the leaf,
    which has one owner more then.
    """
    with internals.DisableTorchFunctionSubclass():
        if not all(_gradient_dtype(leaf) is _dtype(leaf) for leaf in leaves):
            return False
        shared = [leaf for leaf in leaves if internals.use_count(leaf) > 1]
        return not shared or not _is_accumulator_held(shared)


def _has_no_hooks(leaf: torch.Tensor) -> bool:
    return internals.gradient_hooks(leaf) is None and internals.accumulation_hooks(leaf) is None


def _is_accumulator_held(leaves: list[torch.Tensor]) -> bool:
    """Whether anybody holds a node that accumulates the gradient of a leaf: else it is another each time."""
    for node in _accumulators(leaves):
        node.metadata[_MARK] = True
    del node
    marks = [node.metadata.pop(_MARK, False) for node in _accumulators(leaves)]
    return any(marks)


def _accumulators(leaves: list[torch.Tensor]) -> list[Node]:
    with torch.enable_grad():
        made = internals.DelayedError("", len(leaves))(*leaves)
    (first, *_) = made if len(leaves) > 1 else (made,)
    return [node for node, _ in first.grad_fn.next_functions]
