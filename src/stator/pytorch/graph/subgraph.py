"""Recording into a graph of its own: the body of an operation that the main graph performs as one node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import torch
import torch.fx

from stator import errors
from stator.pytorch import internals
from stator.pytorch.graph.graph_module import graph_module
from stator.pytorch.graph.node_meta import NodeMeta
from stator.pytorch.graph.unread import refuse_inside
from stator.pytorch.tensors.classes import is_wrapper
from stator.pytorch.tensors.lowering import Call, Operand
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Function, GraphValue, Nested

__all__ = ["GraphOperand", "Subgraph", "record_module"]


class GraphOperand:
    """A finished graph as an operand of an operation: an attribute of the graph that the operation is recorded in.

    Each recorder's attributes have names of their own, so one name means the same in all graphs of a trace.
    """

    meta = None
    source = None

    def __init__(self, recorder: Recorder, name: str, module: torch.fx.GraphModule) -> None:
        self.recorder = recorder
        self.fake = module
        self.target = f"{name}_{len(recorder.nodes.attributes)}"
        recorder.nodes.attributes[self.target] = module

    @property
    def node(self) -> torch.fx.Node:
        """The node that reads it, made anew for each operation that is given it."""
        return self.recorder.nodes.graph.create_node("get_attr", self.target)


class Subgraph:
    """A graph that is recorded while `recording()`; what it uses of the outside becomes its inputs."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.graph = torch.fx.Graph()
        #: inputs of the caller's choice, before those found by `close`
        self.given: list[GraphValue] = []
        #: the graphs around it, from when it is recorded
        self.around: list[torch.fx.Graph] = []

    def input(self, name: str, value: GraphValue) -> None:
        """Give the graph an input that `value`, which exists nowhere else, stands for."""
        value._node = self.graph.placeholder(name)
        self.recorder.nodes.values[value._node] = value
        self.given.append(value)

    def example(self, like: torch.Tensor, name: str = "example") -> TensorValue:
        """An input that stands for tensors like this fake one, which exist only when the graph runs."""
        cls = type(like) if is_wrapper(type(like)) else torch.Tensor
        value = TensorValue(self.recorder, cls, self.recorder.fakes.describe(like))
        value._fake = like
        self.input(f"{name}_{len(self.given)}", value)
        return value

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record into this graph meanwhile."""
        nodes = self.recorder.nodes
        outer = nodes.graph
        self.around = [*nodes.around, outer]
        nodes.graph, nodes.around = self.graph, self.around
        try:
            yield
        finally:
            nodes.graph, nodes.around = outer, self.around[:-1]

    def holds(self, value: GraphValue) -> bool:
        """Whether the value is computed in this graph, or an input given to it."""
        return bool(value.node.graph is self.graph)

    def computes(self, value: GraphValue) -> bool:
        """Whether the value is computed in this graph, or in one that is recorded within it."""
        return not any(value is given for given in self.given) and value.node.graph not in self.around

    def free(self, results: list[GraphValue]) -> list[GraphValue]:
        """The values of the outside that the graph uses, or that are among its results."""
        values = self.recorder.nodes.values
        found: dict[GraphValue, None] = {}
        outside = [value for value in results if not self.holds(value)]  # some get their nodes only when asked
        for node in self.graph.nodes:
            for used in node.all_input_nodes:
                if used.graph is not self.graph:
                    if used not in values:
                        raise Unsupported(errors.NotReconstructible("a part of the graph without a value"))
                    found[values[used]] = None
        found.update(dict.fromkeys(outside))
        return list(found)

    def close(self, results: Sequence[Nested], free: list[GraphValue], bare: bool = False) -> torch.fx.GraphModule:
        """The finished graph, with inputs for `free` after those given.

        Args:
            results: values of the trace, and constants.
            bare: the graph gives its one result as it is, and not in a tuple.
        """
        graph = self.graph
        nodes = [getattr(value, "node", value) for value in results]
        last = next((n for n in reversed(list(graph.nodes)) if n.op == "placeholder"), internals.root(graph))
        for i, value in enumerate(free):
            outer = value.node
            with graph.inserting_after(last):
                last = graph.placeholder(f"free_{i}")
            last.meta = NodeMeta(partial(self.recorder.fakes.example, value))
            for node in graph.nodes:
                if outer in node.all_input_nodes:
                    node.replace_input_with(outer, last)
            nodes = [last if node is outer else node for node in nodes]
        graph.output(nodes[0] if bare else tuple(nodes))
        module = torch.nn.Module()
        for node in graph.nodes:
            if node.op in ("get_attr", "call_module") and node.target in self.recorder.nodes.attributes:
                setattr(module, node.target, self.recorder.nodes.attributes[node.target])
        graph.lint()
        refuse_inside(self.recorder, graph)
        return graph_module(module, graph)


def record_module(
    recorder: Recorder,
    name: str,
    module: torch.nn.Module,
    operands: Sequence[GraphValue],
    *,
    observed: Function | None = None,
    acts: bool = False,
) -> Value:
    """Record one node: a call of a module with values of the graph.

    Args:
        observed: what is run on fake tensors in the module's place.
        acts: the module does more than compute its result.

    Raises:
        Failure: the module failed on the fake tensors.
    """
    target = f"{name}_{len(recorder.nodes.attributes)}"
    recorder.nodes.attributes[target] = module
    call = Call(observed or module, "call_module", target)
    call.acts = acts
    call.operands = list(dict.fromkeys(operands))
    places = {id(value): Operand(i) for i, value in enumerate(call.operands)}
    call.args = tuple(places[id(value)] for value in operands)
    call.metas = [getattr(value, "meta", None) for value in call.operands]
    return recorder.record(call)
