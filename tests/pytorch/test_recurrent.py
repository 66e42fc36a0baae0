"""LSTM, GRU and RNN."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

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


def test_an_lstm_under_inductor() -> None:
    alike(build(nn.LSTM), sequences, backend="inductor", sizes=(3,), calls=1, breaks=0, tolerance=1e-4)
