# needs: torch
"""The helpers of `stator.testing` for tests of what is captured: counting and keeping backends, comparisons."""

import pytest
import torch

import stator
from stator.testing import (
    AotEagerAndRecordGraphs,
    CompileCounter,
    CompileCounterWithBackend,
    EagerAndRecordGraphs,
    normalize_gm,
    same,
)


def f(x):
    return (x.sin() + 1).sum()


def test_counting():
    counter = CompileCounter()
    compiled = stator.compile(f, backend=counter, fullgraph=True)
    for size in (3, 3, 4):
        assert same(f(torch.ones(size)), compiled(torch.ones(size)))
    assert (counter.frame_count, counter.op_count) == (2, 6)
    counter.clear()
    assert (counter.frame_count, counter.op_count) == (0, 0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_counting_for_a_backend(backend):
    counter = CompileCounterWithBackend(backend)
    x = torch.ones(3, requires_grad=True)
    stator.compile(f, backend=counter, fullgraph=True)(x).backward()
    assert (counter.frame_count, counter.op_count, len(counter.graphs)) == (1, 3, 1)
    assert same(x.grad, torch.ones(3).cos())
    counter.clear()
    assert (counter.frame_count, counter.op_count, counter.graphs) == (0, 0, [])


def test_keeping_graphs():
    backend = EagerAndRecordGraphs()
    stator.compile(f, backend=backend, fullgraph=True)(torch.ones(3))
    (graph,) = backend.graphs
    text = normalize_gm(graph.print_readable(print_output=False))
    assert "x.sin()" in text
    assert "#" not in text
    assert not any(not line.strip() or line != line.rstrip() for line in text.splitlines())


def test_keeping_the_graphs_of_both_passes():
    backend = AotEagerAndRecordGraphs()
    x = torch.ones(3, requires_grad=True)
    stator.compile(f, backend=backend, fullgraph=True)(x).backward()
    assert [len(graphs) for graphs in (backend.graphs, backend.fw_graphs, backend.bw_graphs)] == [1, 1, 1]
    assert "cos" in backend.bw_graphs[0].code
    assert same(x.grad, torch.ones(3).cos())


def test_same():
    t = torch.ones(2)
    assert same([t, {"a": (1, 2.0, "text", None)}], [t + 1e-6, {"a": (1, 2.0 + 1e-6, "text", None)}])
    different = [
        *((t, t + 1), (t, t.double()), (t, torch.ones(3)), (t, [1, 1]), ([t], [t, t]), ({"a": 1}, {"b": 1})),
        *((1.0, 1.1), (1, 2), ("a", "b"), ([1], 1), ({"a": 1}, 1), (1.0, "a"), (None, 0)),
    ]
    assert not any(same(one, other) for one, other in different)
    nan = torch.tensor(float("nan"))
    assert not same(nan, nan)
    assert same(nan, nan, equal_nan=True)


def test_unknown_names():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        stator.testing.nothing  # noqa: B018
