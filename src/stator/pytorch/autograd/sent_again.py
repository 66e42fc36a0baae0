"""Checkpoints whose functions communicate: their graphs send in the backward pass what eager execution sends there.

    y = checkpoint(block, x, use_reentrant=False)      # block: …, dist.all_reduce(h), …

In eager execution the function runs a second time in the backward pass, up to the last tensor that is saved in it, and
sends all again that it meets on the way. Another rank may do just that. So the graph of this one has a call where the
function begins and one where it ends, which do what `checkpoint` does around a function. A backend that traces the
backward pass gets none of them: it computes again what the nodes are marked for (see `distributed.sending`).
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
import torch.fx
from torch.utils.checkpoint import CheckpointPolicy, noop_context_fn

from stator._core import CodePolicy, set_code_policy
from stator.pytorch import internals
from stator.pytorch.graph.graph_module import outlined
from stator.pytorch.tensors.tensor import TensorValue

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.space.interfaces import Trace

__all__ = ["Checkpoints", "end_beyond", "is_boundary", "running"]


class _Running(threading.local):
    """The checkpoints that graphs have begun on this thread, innermost last; None: one that is only traced."""

    def __init__(self) -> None:
        self.begun: list[Iterator[None] | None] = []


_running = _Running()


class Body(torch.nn.Module):
    """What a checkpoint runs again, with its options.

    Args:
        gm: the operations between its two calls, as a graph of their own.
        options: `preserve_rng_state`, `determinism_check` and `early_stop`.
    """

    def __init__(self, gm: torch.fx.GraphModule, options: dict[str, Any]) -> None:
        super().__init__()
        self.run_again = (gm,)  # and not as a submodule: it is no part of the graph
        self.options = options

    def forward(self, *inputs: object) -> Any:
        """Run it again. It is ended where nothing is needed of what follows."""
        before = running()
        try:
            return self.run_again[0].forward(*inputs)
        finally:
            end_beyond(before)


def begin_checkpoint(body: Body, *inputs: object) -> None:
    """The call in a graph where the function of a checkpoint begins. `inputs` is all that its operations use."""
    begun = None
    if not internals.len_dispatch_stack():  # and the graph is not being traced by a backend
        given = body.options
        begun = internals.around_checkpoint(
            body, given["preserve_rng_state"], noop_context_fn, given["determinism_check"], False, given["early_stop"],
            *inputs,
        )  # fmt: skip
        next(begun)
    _running.begun.append(begun)


def end_checkpoint() -> None:
    """The call in a graph where the function of the checkpoint begun last ends."""
    begun = _running.begun.pop()
    if begun is not None:
        next(begun, None)


def running() -> int:
    """How many checkpoints have begun and not ended."""
    return len(_running.begun)


def end_beyond(before: int) -> None:
    """A graph has failed: end those that it has begun."""
    while running() > before:
        begun: Any = _running.begun.pop()
        if begun is not None:
            begun.close()


class Checkpoints:
    """Those of a trace, each by the nodes of its two calls; inner ones first."""

    def __init__(self, trace: Trace) -> None:
        self.recorder: Recorder = trace.recorder
        self.found: list[tuple[torch.fx.Node, torch.fx.Node, dict[str, Any]]] = []
        #: for each, the nodes of its function and those of its results
        self._functions: list[tuple[list[torch.fx.Node], list[torch.fx.Node]]] = []

    def __bool__(self) -> bool:
        return bool(self.found)

    def begin(self) -> torch.fx.Node:
        """Where the function of one begins. A node that nobody needs if it is not ended."""
        return self.recorder.nodes.graph.call_function(begin_checkpoint, ())

    def end(
        self, begun: torch.fx.Node, options: dict[str, Any], nodes: list[torch.fx.Node], results: list[torch.fx.Node]
    ) -> None:
        """The function ends here, and is to be run again. `nodes` are its operations."""
        self._functions.append((nodes, results))
        ended = begun.graph.call_function(end_checkpoint, ())
        self.recorder.effects.keep.update((begun, ended))
        self.found.append((begun, ended, options))

    def outline(self) -> None:
        """The graph is complete: give each what it runs again."""
        attributes = self.recorder.nodes.attributes
        for begun, ended, options in self.found:
            nodes = list(itertools.takewhile(lambda node, ended=ended: node is not ended, _after(begun)))  # type: ignore[misc]
            gm, inputs = outlined(nodes, attributes.__getitem__)  # run for what is saved meanwhile, it has no results
            name = f"checkpoint_{len(attributes)}"
            attributes[name] = Body(gm, options)
            with begun.graph.inserting_before(begun):
                begun.args = (begun.graph.get_attr(name), *inputs)

    def take_out(self, gm: torch.fx.GraphModule) -> None:
        """The backend traces the backward pass: leave it marks on the nodes, and none of the calls."""
        for nodes, results in self._functions:
            self._keep([*{used for node in nodes for used in node.all_input_nodes}.difference(nodes), *results])
        for node in [node for node in reversed(gm.graph.nodes) if is_boundary(node)]:
            attributes = node.all_input_nodes[:1]
            gm.graph.erase_node(node)
            for attribute in attributes:
                gm.graph.erase_node(attribute)
        if self.found:
            gm.recompile()

    def _keep(self, ends: list[torch.fx.Node]) -> None:
        """Keep what a function is given and what it makes: a later one is computed again before it."""
        for node in ends:
            if node.op != "placeholder" and isinstance(self.recorder.nodes.values.get(node), TensorValue):
                node.meta["recompute"] = CheckpointPolicy.MUST_SAVE


def is_boundary(node: torch.fx.Node) -> bool:
    """Whether a node is where the function of a checkpoint begins or ends."""
    return node.target is begin_checkpoint or node.target is end_checkpoint


def _after(node: torch.fx.Node) -> Iterator[torch.fx.Node]:
    while True:
        node = node.next
        yield node


set_code_policy(Body.forward.__code__, CodePolicy.RUN_RECURSIVELY)
