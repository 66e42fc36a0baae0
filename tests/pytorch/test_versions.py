"""Tensors that a graph has written count as often written as without Stator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator

BACKENDS = ["eager", "aot_eager", "inductor"]


def several(x):
    x.add_(1)
    x.mul_(2)
    x.sub_(1)
    return x * 2


def through_views(x):
    part = x[1:]
    part.add_(1)
    part.view(-1).mul_(3)
    return x + 1


def items(x):
    x[0] = 1
    x[1] += 2
    return x


def into_a_result(x):
    x.copy_(x * 2)
    torch.add(x, 1, out=x)
    return x


def broken(x):
    x.add_(1)
    x.add_(1)
    stator.graph_break()
    x.mul_(2)
    x.mul_(2)
    return x * 1


def plain(x):
    x.add_(1)
    x.add_(1)
    x.mul_(2)
    x.mul_(2)
    return x * 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("function", "eager"),
    [
        (several, several),
        (through_views, through_views),
        (items, items),
        (into_a_result, into_a_result),
        (broken, plain),
    ],
)
def test_versions_of_inputs(function: Callable[..., Any], eager: Callable[..., Any], backend: str) -> None:
    compiled = stator.compile(function, backend=backend)
    for size in (3, 4, 7):
        expected, x = torch.zeros(size), torch.zeros(size)
        assert torch.equal(compiled(x), eager(expected))
        assert torch.equal(x, expected) and x._version == expected._version


@pytest.mark.parametrize("backend", BACKENDS)
def test_buffers_that_count_no_writes(backend: str) -> None:
    """The kernel of a BatchNorm writes its statistics without counting; in evaluation it writes nothing."""
    expected, module = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)
    compiled = stator.compile(module, backend=backend)
    for training in (True, False):
        expected.train(training), module.train(training)
        for size in (4, 5, 6):
            x = torch.randn(size, 3)
            with torch.no_grad():
                assert torch.allclose(compiled(x), expected(x))
            assert [b._version for b in module.buffers()] == [b._version for b in expected.buffers()]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_backward_pass_needs_keeps_its_version(backend: str) -> None:
    """Inductor keeps the written statistics themselves for the backward pass."""
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 3))
    compiled = stator.compile(module, backend=backend)
    for size in (4, 5, 6):
        compiled(torch.randn(size, 3)).sum().backward()


@pytest.mark.parametrize("backend", BACKENDS)
def test_tensors_made_in_inference_mode(backend: str) -> None:
    with torch.inference_mode():
        x = torch.zeros(3)
        assert stator.compile(several, backend=backend)(x).tolist() == [2.0, 2.0, 2.0] and x.tolist() == [1.0] * 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_numbers_among_inputs_and_results(backend: str) -> None:
    def f(x, n):
        x.add_(n)
        x.add_(n)
        return x * n, n + 1

    compiled = stator.compile(f, backend=backend)
    for size, n in ((3, 2), (4, 3), (7, 5)):
        expected, x = torch.zeros(size), torch.zeros(size)
        made, number = compiled(x, n)
        assert torch.equal(made, f(expected, n)[0]) and number == n + 1 and x._version == expected._version == 2


def of_data(x: Any) -> Any:
    y = x * 2
    before = y.data._version
    y.add_(1)
    return before, y._version, y.data._version, y.detach()._version, y.data[0]._version


def of_written_data(x: Any) -> Any:
    y = x.clone()
    data = y.data
    y.add_(1)
    data.mul_(2)
    y.detach().add_(1)
    return data._version, y._version


def of_data_of_an_input(x: Any) -> Any:
    x.add_(1)
    data = x.data
    data.add_(1)
    return x._version, data._version, x.data._version


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [of_data, of_written_data, of_data_of_an_input])
def test_data_has_a_version_of_its_own(program: Callable[..., Any], backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for size in (3, 3, 5):
        assert compiled(torch.ones(size)) == program(torch.ones(size))
