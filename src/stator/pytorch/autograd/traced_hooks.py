"""Hooks on tensors that a graph makes, as operations of it.

    y = x * 2
    y.register_hook(lambda g: g * 10)

The hook is traced, and one node of the graph registers it: on the real tensor where the graph is run as recorded, and
in AOTAutograd on what stands for it, so that what the hook computes goes into the backward pass. A hook that does more
than compute, and to call leaf functions, is registered otherwise (see `hooks`). So is a hook that is called before the
node of a tensor (`y.grad_fn.register_prehook(lambda gs: (gs[0] * 10,))`), which gets the gradients in a tuple.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.fx

from stator.pytorch.autograd.backward_graph import Witness, as_in_backward, gradient_of
from stator.pytorch.autograd.context_value import is_none
from stator.pytorch.graph.subgraph import Subgraph, record_module
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.signals import DoFirst
from stator.space.value import Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.autograd.handles import TracedHook
    from stator.space.space import Space

__all__ = ["may_replace", "record_hook"]


class HookModule(torch.nn.Module):
    """Registers a hook on the first tensor that it is called with; the others are what the hook uses of the outside."""

    #: a pass over the graph is not to remove a call whose result nobody uses
    _is_impure = True

    def __init__(self, graph: torch.fx.GraphModule, before_node: bool) -> None:
        super().__init__()
        self.graph = graph
        #: whether it is the node of the tensor that the hook is registered on
        self.before_node = before_node
        #: the program has removed the hook before any gradient could meet it
        self.removed = False

    def forward(self, tensor: torch.Tensor, *used: torch.Tensor) -> None:
        if self.removed:
            return
        if self.before_node:
            tensor.grad_fn.register_prehook(lambda gradients: tuple(self.graph(*gradients, *used)) or None)
        else:
            tensor.register_hook(lambda gradient: next(iter(self.graph(gradient, *used)), None))


def record_hook(space: Space, tensor: TensorValue, hook: Value, traced: TracedHook) -> bool:
    """Record the registration of a hook; False, where that has been tried, if it does more than compute.

    Raises:
        DoFirst: it does; the trace is to begin again.
    """
    what = f"instruction {space.trace.steps}: a hook that does more than compute"
    if what in space.trace.done_first:
        return False
    recorder = space.trace.recorder
    graph = Subgraph(recorder)
    try:
        with graph.recording(), as_in_backward(recorder), Witness(space, hook) as witness:
            gradient = gradient_of(graph, tensor)
            given = space.new_tuple([gradient]) if traced.before_node else gradient
            given_back: Value = space.call(hook, [given], {}).force()
            result = _only_item(space, given_back) if traced.before_node else given_back
    except (Raised, Unsupported):
        result = None
    if result is None or witness.acts or not may_replace(gradient, result):
        raise DoFirst(what, _nothing)
    effects, results = recorder.effects, [] if is_none(result) else [result]
    kept = {node for node in graph.graph.nodes if node in effects.keep}
    if not results and not kept <= effects.acting:
        raise DoFirst(what, _nothing)  # it writes, to the gradient itself perhaps: nothing of it would be in the graph
    if results or kept:
        used = graph.free(results)
        traced.module = HookModule(graph.close(results, used), traced.before_node)
        record_module(recorder, "hook", traced.module, [tensor, *used], acts=True)
        recorder.tracked.engine.traced_hooks.append(traced)
    return True


def _only_item(space: Space, result: Value) -> Value | None:
    """What is in a tuple of one, or Python's None; nothing, if it is neither."""
    if is_none(result):
        return result
    items = space.unpack(result) if result.cls is tuple else []
    return items[0].force() if len(items) == 1 and not is_none(items[0].force()) else None


def _nothing() -> None:
    """What is done before the trace begins again: nothing, it knows more."""


def may_replace(gradient: TensorValue, result: Value) -> bool:
    """Whether a hook may give this: nothing, or a tensor like the gradient."""
    if is_none(result):
        return True
    if not isinstance(result, TensorValue):
        return False
    same = (result.dtype, result.device) == (gradient.dtype, gradient.device)
    return same and bool(result.shape == gradient.shape)
