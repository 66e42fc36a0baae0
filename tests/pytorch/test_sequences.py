"""Sequences of different lengths: packed, put through recurrent layers, padded again; and the loss of CTC."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.functional import ctc_loss
from torch.nn.utils.rnn import pack_padded_sequence, pack_sequence, pad_packed_sequence, pad_sequence

import stator
from tests.pytorch.gradients import BACKENDS, alike

backends = pytest.mark.parametrize("backend", BACKENDS)
CLOSE = 1e-5


def sequences(n: int) -> Any:
    x = torch.linspace(-1, 1, n * 5 * 3).sin().reshape(n, 5, 3).requires_grad_()
    return x, torch.arange(n) % 5 + 1


def sequences_alone(n: int) -> Any:
    x, lengths = sequences(n)
    return x.detach(), lengths


def built(kind: Any, **options: Any) -> Any:
    def make() -> Any:
        torch.manual_seed(0)
        module = kind(3, 4, batch_first=True, **options)

        def program(x: Any, lengths: Any) -> Any:
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out, state = module(packed)
            padded, found = pad_packed_sequence(out, batch_first=True)
            return padded * 2, found, state

        return program, list(module.parameters())

    return make


@backends
@pytest.mark.parametrize("inputs", [sequences, sequences_alone])
@pytest.mark.parametrize("options", [{}, {"num_layers": 2, "bidirectional": True}, {"bias": False}], ids=str)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_recurrent_layers_take_packed_sequences(kind: Any, options: Any, inputs: Any, backend: str) -> None:
    alike(built(kind, **options), inputs, backend=backend, sizes=(4, 7), breaks=0, tolerance=CLOSE)


@backends
def test_a_projection(backend: str) -> None:
    alike(built(nn.LSTM, proj_size=2), sequences, backend=backend, breaks=0, tolerance=CLOSE)


def test_with_inductor() -> None:
    alike(built(nn.GRU), sequences, backend="inductor", sizes=(4,), calls=1, breaks=0, tolerance=1e-4)


@backends
def test_sorted_lengths_a_state_and_a_total_length(backend: str) -> None:
    def make() -> Any:
        torch.manual_seed(0)
        module = nn.LSTM(3, 4)

        def program(x: Any, lengths: Any) -> Any:
            state = torch.ones(1, x.shape[0], 4)
            packed = pack_padded_sequence(x.transpose(0, 1), lengths.sort(descending=True)[0])
            out, _ = module(packed, (state, state))
            return pad_packed_sequence(out, total_length=8, padding_value=-1.0)

        return program, list(module.parameters())

    alike(make, sequences, backend=backend, breaks=0, tolerance=CLOSE)


@backends
def test_lists_of_lengths_and_of_sequences(backend: str) -> None:
    def make() -> Any:
        torch.manual_seed(0)
        module = nn.GRU(3, 4, batch_first=True)

        def program(x: Any, lengths: Any) -> Any:
            packed = pack_padded_sequence(x[:3], [2, 5, 1], batch_first=True, enforce_sorted=False)
            listed = pack_sequence([x[0, :4], x[1, :2]])
            padded = pad_sequence([x[0, :4], x[1, :2]], batch_first=True)
            return module(packed)[1], module(listed)[1], padded, packed.data.sum()

        return program, list(module.parameters())

    alike(make, sequences, backend=backend, sizes=(4, 7), breaks=0, tolerance=CLOSE)


@backends
def test_wrong_lengths_raise_what_they_raise_in_eager(backend: str) -> None:
    program, _ = built(nn.LSTM)()
    x, lengths = sequences(4)
    compiled = stator.compile(program, backend=backend)
    compiled(x, lengths)
    with pytest.raises(RuntimeError, match="Length of all samples has to be greater than 0"):
        compiled(x, lengths - 1)


@backends
def test_dropout_between_layers_is_drawn_as_in_eager(backend: str) -> None:
    made = built(nn.LSTM, num_layers=2, dropout=0.5)
    alike(made, sequences, backend=backend, sizes=(4,), breaks=0, tolerance=CLOSE)


def labelled(n: int) -> Any:
    x = torch.linspace(-1, 1, 6 * n * 4).sin().reshape(6, n, 4).requires_grad_()
    return x, torch.ones(n, 2, dtype=torch.long), torch.full((n,), 6) - torch.arange(n) % 2, torch.arange(n) % 2 + 1


@backends
@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_the_loss_of_ctc_reads_its_lengths(reduction: str, backend: str) -> None:
    def loss(x: Any, targets: Any, *lengths: Any) -> Any:
        return ctc_loss(x.log_softmax(2), targets, *lengths, reduction=reduction, zero_infinity=True) * 2

    alike(lambda: (loss, []), labelled, backend=backend, breaks=0, tolerance=CLOSE)


@backends
def test_the_loss_of_ctc_with_targets_in_a_row_and_lengths_as_numbers(backend: str) -> None:
    def loss(x: Any, targets: Any, inputs: Any, lengths: Any) -> Any:
        joined = torch.ones(int(lengths.shape[0]) * 2, dtype=torch.long)
        return nn.CTCLoss()(x.log_softmax(2), joined, inputs, torch.full_like(lengths, 2)), nn.CTCLoss()(
            x.log_softmax(2), targets, (6,) * x.shape[1], (2,) * x.shape[1]
        )

    alike(lambda: (loss, []), labelled, backend=backend, sizes=(3,), breaks=0, tolerance=CLOSE)


def test_the_loss_of_ctc_with_inductor() -> None:
    def loss(x: Any, targets: Any, *lengths: Any) -> Any:
        return nn.CTCLoss()(x.log_softmax(2), targets, *lengths)

    alike(lambda: (loss, []), labelled, backend="inductor", sizes=(3,), calls=1, breaks=0, tolerance=1e-4)
