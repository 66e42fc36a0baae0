"""The nodes of a graph under construction, and the traced values that they compute."""

from __future__ import annotations

from operator import getitem
from typing import TYPE_CHECKING

import torch.fx

from stator.pytorch.graph.inputs import GraphInputs
from stator.pytorch.graph.node_meta import NodeMeta
from stator.pytorch.nesting import part_of

if TYPE_CHECKING:
    from stator.pytorch.traced import Operation, TracedValue
    from stator.pytorch.types import Nested

__all__ = ["GraphNodes"]


class GraphNodes:
    """The graph of one trace: `graph` is what is recorded into, ordinarily the `whole` graph of the trace.

    `around` are the graphs around that of a function within the program (see `subgraph`). `attributes` are the modules
    and tensors that nodes name.
    """

    def __init__(self) -> None:
        self.graph = self.whole = torch.fx.Graph()
        self.around: list[torch.fx.Graph] = []
        self.inputs = GraphInputs(self.whole)
        self.attributes: dict[str, object] = {}
        #: the traced values that nodes compute
        self.values: dict[torch.fx.Node, TracedValue] = {}
        #: the operations that nodes were recorded for
        self.operations: dict[torch.fx.Node, Operation] = {}
        #: the nodes of parts of results
        self._parts: dict[tuple[torch.fx.Node, int | str], torch.fx.Node] = {}
        #: what the program says of the nodes made in a block, for each that it is in
        self.annotations: list[dict[str, object]] = []
        #: existing tensors that are in existing wrappers, by id: the wrapper, and the name of the attribute
        self.inner: dict[int, tuple[TracedValue, str]] = {}

    def of(self, value: TracedValue) -> torch.fx.Node:
        """The node of a value used for the first time: a graph input, or a part of an operation's result."""
        if value.operation is not None:
            node = value.operation.node
            for index in value.path:
                node = self.part(node, index)
        elif id(value.host) in self.inner:
            wrapper, name = self.inner[id(value.host)]
            node = self.part(wrapper.node, name)
        elif value.symbolic and value.cls is float and not value.recorder.keeps_order:
            node = self._unboxed(value)
        else:
            node = self.inputs.add(value)
        self.values.setdefault(node, value)
        return node

    def part(self, node: torch.fx.Node, step: int | str) -> torch.fx.Node:
        """The node of an item, or of an attribute, of what a node computes."""
        made = self._parts.get((node, step))
        if made is None:
            function = getattr if isinstance(step, str) else getitem
            made = self._parts[node, step] = node.graph.call_function(function, (node, step))
            parent = node.meta
            made.meta = NodeMeta(lambda: _part_of(parent.get("example_value"), step))
        return made

    def _unboxed(self, value: TracedValue) -> torch.fx.Node:
        """A symbolic float that existed before the trace, read from a tensor for a backend that needs that."""
        tensor = value.recorder.shapes.boxed(value).node
        with self.whole.inserting_after(tensor):
            node = self.whole.call_method("item", (tensor,))
        node.meta = NodeMeta(lambda: value.fake)
        return node


def _part_of(value: Nested, step: int | str) -> Nested:
    return None if value is None else part_of(value, step)
