"""Nodes of autograd's graph, and edges to them, of tensors that are written to afterwards."""

from typing import Any

import pytest
import torch
from torch.autograd.graph import GradientEdge, get_gradient_edge

import stator
from tests.pytorch.training import BACKENDS


def named(x: Any) -> Any:
    y = x * 2
    before = y.grad_fn
    y.mul_(3)
    return before.name(), y.grad_fn.name(), before is y.grad_fn


def named_under_a_view(x: Any) -> Any:
    y = x * 2
    before = y.grad_fn
    part = y[0]
    part.mul_(3)
    return before.name(), y.grad_fn.name()


def edge_before(x: Any) -> Any:
    y = x * 2
    edge = get_gradient_edge(y)
    y.mul_(3)
    return torch.autograd.grad(y.sum(), edge)[0]


def edge_behind(x: Any) -> Any:
    y = x * 2
    y.mul_(3)
    edge = get_gradient_edge(y)
    return torch.autograd.grad((y * y).sum(), edge)[0]


def from_the_node_before(x: Any) -> Any:
    y = x * 2
    before = y.grad_fn
    y.mul_(3)
    return torch.autograd.grad(GradientEdge(before, 0), x, grad_outputs=torch.ones_like(y))[0]


def out_of_reach(x: Any) -> Any:
    y = x * 2
    before = y.grad_fn
    y.zero_()
    return before.name(), torch.autograd.grad(GradientEdge(before, 0), x, grad_outputs=torch.ones_like(y))[0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "program", [named, named_under_a_view, edge_before, edge_behind, from_the_node_before, out_of_reach]
)
def test_a_node_is_the_one_that_was_asked_for(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for size in (3, 3, 5, 7):
        expected, found = (run(torch.arange(1.0, size + 1).requires_grad_()) for run in (program, compiled))
        assert str(found) == str(expected)
