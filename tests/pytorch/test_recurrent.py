"""LSTM, GRU and RNN."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import stator
from stator.backends.registry import lookup_backend
from tests.pytorch.gradients import BACKENDS, alike

backends = pytest.mark.parametrize("backend", BACKENDS)


def sequences(n: int) -> Any:
    return (torch.linspace(0, 1, n * 6).reshape(n, 2, 3),)


def wanting(n: int) -> Any:
    return (torch.linspace(0, 1, n * 6).reshape(n, 2, 3).requires_grad_(),)


def build(kind: Any, **options: Any) -> Any:
    def make() -> Any:
        torch.manual_seed(0)
        module = kind(3, 4, **options)

        def program(x: Any) -> Any:
            out, state = module(x)
            return [out * 2, state]

        return program, list(module.parameters())

    return make


@backends
@pytest.mark.parametrize("inputs", [sequences, wanting])
@pytest.mark.parametrize(
    "options", [{}, {"num_layers": 2, "bidirectional": True}, {"batch_first": True, "bias": False}]
)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_gradients_of_parameters_and_input(kind: Any, options: Any, inputs: Any, backend: str) -> None:
    alike(build(kind, **options), inputs, backend=backend, sizes=(3,), calls=1, breaks=0, tolerance=1e-5)


@backends
def test_other_sizes(backend: str) -> None:
    alike(build(nn.LSTM), sequences, backend=backend, breaks=0, tolerance=1e-5)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_under_inductor(kind: Any) -> None:
    options = {"batch_first": True, "num_layers": 2}
    alike(build(kind, **options), sequences, backend="inductor", sizes=(3, 5), calls=1, breaks=0, tolerance=1e-4)


@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"bidirectional": True}, {"proj_size": 2}])
def test_a_layer_is_one_operation_for_all_lengths(options: Any) -> None:
    """AOTAutograd would take each step apart, and again for each length."""
    graphs: list[Any] = []

    def backend(gm: Any, inputs: Any) -> Any:
        graphs.append(gm)
        return lookup_backend("aot_eager")(gm, inputs)

    module = nn.LSTM(3, 4, **options)
    compiled = stator.compile(module, backend=backend, fullgraph=True)
    for n in (5, 60, 100, 101):
        for grad in (True, False):
            with torch.set_grad_enabled(grad):
                got, (h, c) = compiled(torch.ones(n, 2, 3))
                expected = module(torch.ones(n, 2, 3))
            torch.testing.assert_close((got, (h, c)), expected)
            assert [t.stride() for t in (got, h, c)] == [t.stride() for t in (expected[0], *expected[1])]
    assert len(graphs) == 4  # of fixed and of other lengths, with gradients and without
    assert all("padded_lstm" in gm.code for gm in graphs)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_in_the_body_of_an_operation(kind: Any) -> None:
    module = kind(3, 4)

    def f(x: Any) -> Any:
        return checkpoint(lambda x: module(x)[0], x, use_reentrant=False)

    for n in (2, 3, 5):
        results = []
        for called in (stator.compile(f, backend="aot_eager"), f):
            x = torch.linspace(0, 1, n * 6).reshape(n, 2, 3).requires_grad_()
            made = called(x)
            results.append((made, torch.autograd.grad(made.sum(), x)))
        torch.testing.assert_close(*results)
