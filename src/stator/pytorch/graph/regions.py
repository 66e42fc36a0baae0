"""Functions marked `torch.compiler.nested_compile_region`: what their calls compute becomes one graph, compiled once.

    @nested_compile_region
    def block(x, w): ...

    for w in weights:
        x = block(x, w)      # x = invoke_subgraph(graph, "region_0", x, w), with one graph for all

The calls are traced into the graph around them, as any others: so whatever a region does besides computing needs no
rule of its own. When the trace is finished, the nodes of each call are taken out into a graph; calls whose graphs are
equal share one. A call stays where it is if there is more to it than computing (`_Region.computes`), and for backends
that do not trace the backward pass: run as it is, the operator would be a call for nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import takewhile
from operator import getitem
from typing import TYPE_CHECKING, TypeGuard

import torch
import torch.fx

from stator.pytorch.graph.graph_module import graph_module
from stator.pytorch.graph.node_meta import NodeMeta, call_chain
from stator.pytorch.nesting import Bare
from stator.pytorch.shapes.unbacked import sizes_of
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.tensor import TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stator.pytorch.graph.node_meta import Chain
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedValue
    from stator.pytorch.types import Host, Nested
    from stator.space.interfaces import Trace

__all__ = ["Regions"]


class Regions:
    """The marked calls of a trace, inner ones first."""

    def __init__(self, trace: Trace) -> None:
        self.recorder: Recorder = trace.recorder
        self.found: list[_Region] = []

    @contextmanager
    def call(self, options: Host) -> Iterator[None]:
        """What is recorded meanwhile belongs to a marked call, with these options of the mark."""
        recorder = self.recorder
        graph = recorder.nodes.graph
        taken = recorder.traces_backward and graph is recorder.nodes.whole and not _casts()
        before = next(reversed(graph.nodes), None)
        yield
        if taken:
            chain = call_chain(recorder.trace.frame)
            self.found.append(_Region(recorder, _since(graph, before), options, chain))

    def outline(self) -> None:
        """Take the calls out of the finished graph."""
        shared: dict[object, tuple[str, torch.fx.GraphModule]] = {}
        for i, region in enumerate(self.found):
            made = region.outline(shared)
            for outer in self.found[i + 1 :]:
                if not region.nodes.isdisjoint(outer.nodes):
                    outer.nodes |= made


def _casts() -> bool:
    return torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda")


def _since(graph: torch.fx.Graph, before: torch.fx.Node | None) -> set[torch.fx.Node]:
    made = takewhile(lambda node: node is not before, reversed(graph.nodes))
    return {node for node in made if node.op != "placeholder"}


class _Region:
    """One call: its nodes, as far as they are still in the graph."""

    def __init__(self, recorder: Recorder, nodes: set[torch.fx.Node], options: Host, chain: Chain) -> None:
        self.recorder = recorder
        self.graph = recorder.nodes.whole
        self.nodes = nodes
        self.options = options
        self.chain = chain

    def outline(self, shared: dict[object, tuple[str, torch.fx.GraphModule]]) -> set[torch.fx.Node]:
        """Put a call of a graph in the place of the nodes; the nodes of that call, if it can be done."""
        self.gather()
        body = [node for node in self.graph.nodes if node in self.nodes]
        given = list(dict.fromkeys(used for node in body for used in node.all_input_nodes if used not in self.nodes))
        results = [node for node in body if not self.nodes.issuperset(node.users)]
        values = self.recorder.nodes.values
        if not (results and self.computes(body) and self.apart([values.get(node) for node in results])):
            return set()
        operands = [value for node in given if _may_enter(value := values.get(node))]
        if len(operands) < len(given):
            return set()
        symbols = self.recorder.shapes.binders(operands)
        bare = {str(size) for value in operands for size in sizes_of(value.fake)} if symbols else set()
        for symbol in symbols:
            # Of `s // 2` alone Inductor cannot tell what `s` is.
            if str(symbol.number) not in bare:
                operands.append(symbol)
                given.append(symbol.node)
        key = (_text(body, given, results), tuple([_facts(value) for value in operands]), id(self.options))
        if key not in shared:
            name = f"region_{len(self.recorder.nodes.attributes)}"
            self.recorder.nodes.attributes[name] = module = self.taken_out(body, given, results)
            shared[key] = name, module
        return self.called(shared[key][0], body, given, results)

    def gather(self) -> None:
        """Parts of what is inside belong to it; numbers and parts that depend on nothing inside come before."""
        kept: list[torch.fx.Node] = []
        for node in [node for node in self.graph.nodes if node in self.nodes]:
            if self.is_inside(node):
                kept.append(node)
                continue
            self.nodes.remove(node)
            if kept:
                kept[0].prepend(node)
        for node in list(self.graph.nodes):
            if node not in self.nodes and _is_part(node) and node.args[0] in self.nodes:
                node.args[0].append(node)
                self.nodes.add(node)

    def is_inside(self, node: torch.fx.Node) -> bool:
        """Whether a node that was recorded meanwhile is one of the call's own."""
        if node.op == "get_attr":
            return isinstance(self.recorder.nodes.attributes.get(str(node.target)), torch.nn.Module)
        value = self.recorder.nodes.values.get(node)
        needed = _is_part(node) or (value is not None and value.symbolic)
        return not needed or not self.nodes.isdisjoint(node.all_input_nodes)

    def computes(self, body: list[torch.fx.Node]) -> bool:
        """Whether the nodes compute, and write to what they have made: no more."""
        effects, values = self.recorder.effects, self.recorder.nodes.values
        if any(node.op == "call_module" or "recompute" in node.meta for node in body):
            return False
        written = [root for node in body for root in effects.writes.get(node, ())]
        held = {id(value.root) for node in body if isinstance(value := values.get(node), TensorValue)}
        own = all(self.holds(root) and id(root) in held for root in written)
        return own and effects.drawing.isdisjoint(body) and (effects.keep - effects.writes.keys()).isdisjoint(body)

    def holds(self, value: TracedValue) -> bool:
        """Whether the value is computed inside."""
        return value.host is None and value.node in self.nodes

    def apart(self, results: list[TracedValue | None]) -> bool:
        """Whether the results are tensors with a memory of their own each, made inside."""
        roots = {id(value.root) for value in results if _is_plain(value) and self.holds(value.root)}
        return len(roots) == len(results)

    def taken_out(
        self, body: list[torch.fx.Node], given: list[torch.fx.Node], results: list[torch.fx.Node]
    ) -> torch.fx.GraphModule:
        """The graph of the call."""
        recorder, graph = self.recorder, torch.fx.Graph()
        inside: dict[torch.fx.Node, torch.fx.Node] = {}
        root = torch.nn.Module()
        for i, node in enumerate(given):
            inside[node] = graph.placeholder(f"arg_{i}")
            inside[node].meta = NodeMeta(lambda value=recorder.nodes.values[node]: recorder.fakes.example(value))  # type: ignore[misc]
        for node in body:
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), inside.__getitem__)
            inside[node] = graph.create_node(node.op, node.target, args, kwargs)
            inside[node].meta = node.meta
            if node.op == "get_attr":
                setattr(root, str(node.target), recorder.nodes.attributes[str(node.target)])
        graph.output(tuple([inside[node] for node in results]))
        module = graph_module(root, graph)
        if self.options is not None:
            module.meta["nested_region_config"] = self.options
        return module

    def called(
        self, name: str, body: list[torch.fx.Node], given: list[torch.fx.Node], results: list[torch.fx.Node]
    ) -> set[torch.fx.Node]:
        """Put the call in the place of the nodes."""
        nodes = self.recorder.nodes
        with self.graph.inserting_after(body[-1]):
            call = self.graph.call_function(torch.ops.higher_order.invoke_subgraph, ())
        with self.graph.inserting_before(call):
            call.args = (self.graph.get_attr(name), name, *given)
        metas = [node.meta for node in results]
        call.meta = NodeMeta(lambda: tuple([meta.get("example_value") for meta in metas]), self.chain)
        if self.options is not None:
            call.meta["custom"] = {"nested_region_config": self.options}
        made = {call, call.args[0]}
        last = call
        for i, node in enumerate(results):
            with self.graph.inserting_after(last):
                last = self.graph.call_function(getitem, (call, i))
            last.meta = node.meta
            value = nodes.values.pop(node)
            value._node, nodes.values[last] = last, value
            node.replace_all_uses_with(last, lambda user: user not in self.nodes)
            made.add(last)
        for node in reversed(body):
            self.graph.erase_node(node)
        return made


def _is_part(node: torch.fx.Node) -> bool:
    return node.op == "call_function" and node.target in (getitem, getattr) and len(node.args) == 2


def _is_plain(value: TracedValue | None) -> TypeGuard[TensorValue]:
    return isinstance(value, TensorValue) and value.cls in PLAIN_CLASSES and value.meta is not None


def _may_enter(value: TracedValue | None) -> TypeGuard[TracedValue]:
    return _is_plain(value) or (value is not None and value.symbolic and value.cls is int)


def _facts(value: TracedValue) -> object:
    """What the graph relies on of an operand; whether it is a leaf or a view is known outside only."""
    if not isinstance(value, TensorValue):
        return str(value.fake.node.expr)
    meta = value.meta
    assert meta is not None
    sizes = str((meta.shape, meta.stride, meta.offset))
    return sizes, meta.dtype, meta.device, meta.requires_grad, meta.bits


def _text(body: list[torch.fx.Node], given: list[torch.fx.Node], results: list[torch.fx.Node]) -> object:
    """What is equal for graphs that compute the same of what they are given."""
    places = {node: f"%{i}" for i, node in enumerate((*given, *body))}

    def show(nested: Nested) -> str:
        return repr(torch.fx.node.map_arg(nested, lambda node: Bare(places[node])))

    steps = tuple([(node.op, node.target, show(node.args), show(node.kwargs)) for node in body])
    return steps, tuple([places[node] for node in results])
