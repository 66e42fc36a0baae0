"""Graphs of `torch.fx` that the traced program goes through."""

from __future__ import annotations

from collections import namedtuple
from typing import Any

import pytest
import torch
from torch import fx, nn

import stator
from stator.pytorch.modules import fx_graphs
from tests.pytorch.gradients import BACKENDS, alike, vector

Pair = namedtuple("Pair", "a b")


class Doubling(fx.Interpreter):
    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        return super().call_function(target, args, kwargs) * 2


def function(x: Any) -> Any:
    return torch.sin(x) + torch.cos(x) * x.sum()


MODULE, GRAPH = fx.symbolic_trace(nn.Sequential(nn.Tanh(), nn.Softmax(0))), fx.symbolic_trace(function)


def interpreted(x: Any) -> Any:
    return fx.Interpreter(GRAPH).run(x) + fx.Interpreter(MODULE, garbage_collect_values=False).run(x)


def interpreted_by_a_subclass(x: Any) -> Any:
    return Doubling(GRAPH).run(x)


def gone_through(x: Any) -> Any:
    for node in GRAPH.graph.nodes:
        if node.op == "call_function":
            x = x + len(node.args)
    return x, [node.name for node in reversed(GRAPH.graph.nodes)], GRAPH.graph.find_nodes(op="placeholder")[0].name


def gone_through_with_breaks(x: Any) -> Any:
    for node in GRAPH.graph.nodes:
        x = x + len(node.name)
        stator.graph_break()
    return x


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [interpreted, interpreted_by_a_subclass, gone_through])
def test_one_graph(program: Any, backend: str) -> None:
    alike(lambda: (program, []), vector, backend=backend, breaks=0, tolerance=1e-6)


def test_an_iterator_goes_on_behind_a_break() -> None:
    stats = alike(lambda: (gone_through_with_breaks, []), vector)
    assert "SB0101" not in {record.code for record in stats.breaks}


def test_a_changed_graph_is_traced_again() -> None:
    module = fx.symbolic_trace(function)
    compiled = stator.compile(lambda x: fx.Interpreter(module).run(x), backend="eager")
    x = torch.ones(3)
    assert torch.equal(compiled(x), function(x))
    (node,) = [node for node in module.graph.nodes if node.target is torch.sin]
    node.target = torch.exp
    assert torch.equal(compiled(x), torch.exp(x) + torch.cos(x) * x.sum())
    with module.graph.inserting_before(node):
        node.replace_all_uses_with(module.graph.call_function(torch.tanh, node.args))
    module.graph.erase_node(node)
    assert torch.equal(compiled(x), torch.tanh(x) + torch.cos(x) * x.sum())


NODE = next(iter(GRAPH.graph.nodes))
ARGUMENTS = (
    (),
    (1,),
    (NODE, 1),
    Pair(NODE, 2),
    [],
    [NODE, [1]],
    {},
    {"a": NODE, "b": (2,)},
    slice(NODE, 1),
    NODE,
    None,
)
ARGUMENTS += (torch.Size([1]), range(3), {NODE}, fx.immutable_collections.immutable_list([NODE]))


@pytest.mark.parametrize("given", ARGUMENTS, ids=repr)
def test_what_maps_arguments_does_what_torchs_does(given: Any) -> None:
    for ours, torchs in ((fx_graphs.map_nodes, fx.map_arg), (fx_graphs.map_all, fx.node.map_aggregate)):
        got, want = ours(given, lambda leaf: "mapped"), torchs(given, lambda leaf: "mapped")
        assert got == want
        assert type(got) is type(want)


def test_what_goes_through_nodes_does_what_torchs_does() -> None:
    graph = fx.symbolic_trace(function).graph
    ours, torchs = fx_graphs.NodeIter(graph._root, False), iter(graph.nodes)
    for _ in range(len(graph.nodes) + 4):
        assert next(ours, None) is next(torchs, None)
    ours, torchs = fx_graphs.NodeIter(graph._root, True), reversed(graph.nodes)
    second = list(graph.nodes)[-2]
    assert (next(ours), next(ours)) == (next(torchs), next(torchs)) == (list(graph.nodes)[-1], second)
    second.replace_all_uses_with(NODE)
    graph.erase_node(second)
    assert list(ours) == list(torchs)
