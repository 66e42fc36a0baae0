"""Gradients that a graph computes through operators of Stator's own, and through wrappers of its inputs.

With AOT backends such a graph runs below autograd: an operator that runs torch's function again for its gradients must
have autograd record it all the same. It did not, and the gradients were zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import stator
from tests.pytorch.training import BACKENDS

Step = Callable[[torch.Tensor], torch.Tensor]


def padded(layer: nn.Module) -> Step:
    return lambda h: layer(h)[0].square().sum()


def packed(layer: nn.Module) -> Step:
    def loss(h: torch.Tensor) -> torch.Tensor:
        output, _ = layer(pack_padded_sequence(h, torch.tensor([h.shape[0], 2])))
        return pad_packed_sequence(output)[0].square().sum()

    return loss


def connectionist(lengths: Callable[[list[int]], Any]) -> Step:
    def loss(h: torch.Tensor) -> torch.Tensor:
        log_probs = F.pad(h, (0, 2)).log_softmax(-1)
        return F.ctc_loss(log_probs, torch.tensor([[1, 2], [3, 1]]), lengths([h.shape[0], 4]), lengths([2, 1]))

    return loss


def jagged(h: torch.Tensor) -> torch.Tensor:
    rows = torch.nested.nested_tensor_from_jagged(h.flatten(0, 1), torch.tensor([0, 2, h.shape[0] * 2]))
    return (rows * 2).values().square().sum()


LOSSES: dict[str, Callable[[], tuple[Step, list[nn.Parameter]]]] = {}


def _layer(kind: Callable[..., nn.Module], around: Callable[[nn.Module], Step], **options: Any) -> Any:
    def make() -> tuple[Step, list[nn.Parameter]]:
        layer = kind(4, 3, **options)
        return around(layer), list(layer.parameters())

    return make


LOSSES |= {
    "lstm": _layer(nn.LSTM, padded),
    "deep lstm": _layer(nn.LSTM, padded, num_layers=2, bidirectional=True, proj_size=2),
    "gru": _layer(nn.GRU, padded),
    "rnn": _layer(nn.RNN, padded),
    "packed lstm": _layer(nn.LSTM, packed),
    "packed gru": _layer(nn.GRU, packed),
    "lstm that drops": _layer(nn.LSTM, padded, num_layers=2, dropout=0.5),
    "ctc": lambda: (connectionist(torch.tensor), []),
    "ctc of numbers": lambda: (connectionist(tuple), []),
    "jagged": lambda: (jagged, []),
}


def gradients(name: str, backend: str | None, compute: str) -> list[list[torch.Tensor]]:
    """Of the layer before, and of the parameters, at three lengths."""
    torch.manual_seed(0)
    before = nn.Linear(4, 4)
    loss_of, parameters = LOSSES[name]()
    parameters = [*before.parameters(), *parameters]

    def step(x: torch.Tensor) -> Any:
        loss = loss_of(before(x))
        if compute == "grad":
            return torch.autograd.grad(loss, parameters)
        loss.backward()
        return loss.detach()

    stator.reset()
    run = step if backend is None else stator.compile(step, backend=backend)
    found = []
    for length in (5, 6, 7):
        torch.manual_seed(length)
        for parameter in parameters:
            parameter.grad = None
        result = run(torch.randn(length, 2, 4))
        found.append([*result] if compute == "grad" else [result, *(p.grad for p in parameters)])
    return found


@pytest.mark.parametrize("compute", ["backward", "grad"])
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", LOSSES)
def test_gradients_inside_of_a_graph(name: str, backend: str, compute: str) -> None:
    check(name, backend, compute)


@pytest.mark.parametrize("name", ["lstm", "packed gru", "ctc"])
def test_gradients_with_inductor(name: str) -> None:
    check(name, "inductor", "backward")


def check(name: str, backend: str, compute: str) -> None:
    expected, found = gradients(name, None, compute), gradients(name, backend, compute)
    for mine, theirs in zip(found, expected, strict=True):
        assert all(gradient is not None and gradient.abs().sum() > 0 for gradient in theirs)
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_values_of_a_jagged_tensor_are_a_parameter(backend: str) -> None:
    weight, offsets = nn.Parameter(torch.arange(24.0).reshape(6, 4)), torch.tensor([0, 2, 6])

    def step() -> torch.Tensor:
        loss = torch.nested.nested_tensor_from_jagged(weight, offsets).values().square().sum()
        loss.backward()
        return loss.detach()

    compiled = stator.compile(step, backend=backend)
    for _ in range(3):
        weight.grad = None
        compiled()
        assert torch.equal(weight.grad, 2 * weight)
