"""The functions of torch that read lengths: packing, unpacking, recurrent layers on packed input, the loss of CTC.

Recurrent layers on padded input read none, but AOTAutograd takes them apart into the operations of each step: tens of
seconds for a hundred steps, then slower than torch's own kernels, and another graph for each length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import torch

from stator.pytorch import internals
from stator.pytorch.sequences.drawing import Drawing
from stator.pytorch.sequences.reading import Reading, new_size

if TYPE_CHECKING:
    from stator.pytorch.types import Function

__all__ = ["CTC", "CTC_OF_NUMBERS", "DROPPING", "PACK", "PAD", "PADDED", "PADDED_DROPPING", "RECURRENT"]

_R = TypeVar("_R", bound=Reading)

_C: Any = internals.VariableFunctions


def _packed(given: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
    return given.new_empty((new_size(), *given.shape[2:])), lengths.new_empty((new_size(),))


def _padded(
    data: torch.Tensor, batch_sizes: torch.Tensor, batch_first: bool, padding: float, length: int
) -> tuple[torch.Tensor, torch.Tensor]:
    batch = new_size()
    padded = data.new_empty((length, batch, *data.shape[1:]))
    return padded.transpose(0, 1) if batch_first else padded, batch_sizes.new_empty((batch,))


def _lstm_like(data: torch.Tensor, batch_sizes: torch.Tensor, hx: list[torch.Tensor], *rest: Any) -> Any:
    directions = 2 if rest[-1] else 1
    output = data.new_empty((data.shape[0], directions * hx[0].shape[-1]))
    return output, *[torch.empty_like(state) for state in hx]


def _rnn_like(data: torch.Tensor, batch_sizes: torch.Tensor, hx: torch.Tensor, *rest: Any) -> Any:
    return _lstm_like(data, batch_sizes, [hx], *rest)


def _padded_lstm_like(given: torch.Tensor, hx: list[torch.Tensor], *rest: Any) -> Any:
    bidirectional, batch_first = rest[-2:]
    steps, batch = given.shape[1::-1] if batch_first else given.shape[:2]
    output = given.new_empty((steps, batch, (2 if bidirectional else 1) * hx[0].shape[-1]))
    return output.transpose(0, 1) if batch_first else output, *[state.new_empty(state.shape) for state in hx]


def _padded_rnn_like(given: torch.Tensor, hx: torch.Tensor, *rest: Any) -> Any:
    return _padded_lstm_like(given, [hx], *rest)


def _loss(log_probs: torch.Tensor, *rest: Any) -> torch.Tensor:
    unreduced = log_probs.dim() == 3 and rest[-2] == 0
    return log_probs.new_empty((log_probs.shape[1],) if unreduced else ())


PACK = Reading(
    "pack",
    "(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, Tensor)",
    internals.pack_padded_sequence,
    _packed,
    (0,),
)
PAD = Reading(
    "pad",
    "(Tensor data, Tensor batch_sizes, bool batch_first, Scalar padding, SymInt length) -> (Tensor, Tensor)",
    internals.pad_packed_sequence,
    _padded,
    (0,),
)


def _ctc(name: str, lengths: str) -> Reading:
    schema = (
        f"(Tensor log_probs, Tensor targets, {lengths} input_lengths, {lengths} target_lengths, int blank, "
        "int reduction, bool zero_infinity) -> Tensor"
    )
    return Reading(name, schema, _C.ctc_loss, _loss, (0,))


#: with lengths that are tensors, and with such as are numbers
CTC, CTC_OF_NUMBERS = _ctc("ctc_loss", "Tensor"), _ctc("ctc_loss_of_numbers", "int[]")
_REST = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


def _recurrent(
    kind: type[_R], prefix: str, schema: str, of_lstm: Function, of_others: Function, differentiable: tuple[int, ...]
) -> dict[Function, _R]:
    """The readings of recurrent layers, by the function of torch.

    Args:
        kind: of what class they are.
        prefix: what their names begin with.
        schema: the parameters, with `{hx}` for the type of the hidden state: an LSTM has two tensors there.
        of_lstm: what an LSTM gives for fake tensors.
        of_others: what the others give.
        differentiable: the positions of the parameters that have gradients.
    """
    lstm = f"{schema.format(hx='Tensor[]')} -> (Tensor, Tensor, Tensor)"
    other = f"{schema.format(hx='Tensor')} -> (Tensor, Tensor)"
    return {
        _C.lstm: kind(f"{prefix}lstm", lstm, _C.lstm, of_lstm, differentiable),
        **{
            host: kind(f"{prefix}{host.__name__}", other, host, of_others, differentiable)
            for host in (_C.gru, _C.rnn_tanh, _C.rnn_relu)
        },
    }


_ON_PACKED = f"(Tensor data, Tensor batch_sizes, {{hx}} hx, {_REST})", _lstm_like, _rnn_like, (0, 2, 3)
_ON_PADDED = f"(Tensor input, {{hx}} hx, {_REST}, bool batch_first)", _padded_lstm_like, _padded_rnn_like, (0, 1, 2)
#: on packed input, and such as drop out elements between their layers
RECURRENT = _recurrent(Reading, "", *_ON_PACKED)
DROPPING = _recurrent(Drawing, "dropping_", *_ON_PACKED)
#: the same on padded input
PADDED = _recurrent(Reading, "padded_", *_ON_PADDED)
PADDED_DROPPING = _recurrent(Drawing, "padded_dropping_", *_ON_PADDED)
