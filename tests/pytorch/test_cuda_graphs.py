"""Inductor's CUDA graphs: where a step begins, and which inputs are not copied. No GPU is needed to see that."""

import sys
import types

import pytest
import torch

import stator


@pytest.fixture
def tracker(monkeypatch):
    trees = types.ModuleType("torch._inductor.cudagraph_trees")
    trees.GenerationTracker = types.SimpleNamespace(generation=0)
    monkeypatch.setitem(sys.modules, trees.__name__, trees)
    return trees.GenerationTracker


def replayed(graph, examples):
    """A backend whose graphs might be replayed: not `eager`, which gives back what it is given."""
    return lambda *inputs: graph(*inputs)


def whole(x):
    return x.sin() + 1


def broken(x):
    y = x.sin()
    stator.graph_break()
    return y + 1


@pytest.mark.parametrize("function", [whole, broken])
def test_each_call_of_a_compiled_function_is_a_step(function, tracker):
    compiled = stator.compile(function, backend=replayed)
    x = torch.ones(3)
    for calls in (1, 2, 3):
        compiled(x)
        assert tracker.generation == calls


def test_a_call_within_a_compiled_function_belongs_to_its_step(tracker):
    inner = stator.compile(whole, backend=replayed)
    outer = stator.compile(lambda x: inner(x) * 2, backend=replayed)
    outer(torch.ones(3))
    outer(torch.ones(3))
    assert tracker.generation == 2


def test_other_functions_begin_steps_too(tracker):
    first, second = (stator.compile(f, backend=replayed) for f in (whole, lambda x: x * 2))
    for _ in range(2):
        second(first(torch.ones(3)))
    assert tracker.generation == 4


def test_without_cuda_graphs_nothing_is_counted(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch._inductor.cudagraph_trees", raising=False)
    stator.compile(whole, backend=replayed)(torch.ones(3))
    assert "torch._inductor.cudagraph_trees" not in sys.modules


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)
        self.linear = torch.nn.Linear(4, 2)
        self.table = torch.ones(4)

    def forward(self, x):
        return self.linear(self.norm(x * self.table))


def test_parameters_and_buffers_stay_where_they_are():
    """What is written in place and is none of these, no graph of kernels is made with."""
    marked = {}

    def backend(graph, examples):
        for node, example in zip(graph.graph.find_nodes(op="placeholder"), examples, strict=True):
            marked[id(example)] = node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type")
        return graph.forward

    model, x = Model(), torch.ones(3, 4)
    stator.compile(model, backend=backend)(x)
    members = [*model.parameters(), *model.buffers()]
    assert [marked[id(tensor)] for tensor in members] == ["unguarded"] * 7
    assert marked[id(x)] is None
    assert marked[id(model.table)] is None
