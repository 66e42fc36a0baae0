"""Calls of torch's functions that read lengths, recorded as operators that a backend can take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.sequences.operators import CTC, CTC_OF_NUMBERS, PACK, PAD
from stator.pytorch.tensors.calls import function_handler, importable
from stator.pytorch.tensors.lowering import Call
from stator.pytorch.tensors.recording import record
from stator.pytorch.tensors.subclass import dispatched
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.protocol import Handler, register
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.pytorch.sequences.reading import Reading
    from stator.space.space import Space

__all__ = ["install", "read"]


def read(space: Space, reading: Reading, args: list[Value]) -> Value:
    """Record a call; a backend that runs it as it was recorded is given torch's own function."""
    overridden = dispatched(space, reading.real, args, {})
    if overridden is not None:
        return overridden
    own = space.trace.recorder.keeps_order
    target: Any = importable(reading.real) if own else reading.operator
    return record(space, Call(reading.operator, "call_function", target), args, {})


def _handler(reading: Reading) -> Handler:
    otherwise = function_handler(reading.real)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return otherwise(space, args, kwargs) if kwargs else read(space, reading, args)

    return handler


#: what `torch.ctc_loss` is given, with the defaults of those that may be left out
_CTC: dict[str, Any] = dict.fromkeys(("log_probs", "targets", "input_lengths", "target_lengths"))
_CTC |= {"blank": 0, "reduction": 1, "zero_infinity": False}


def _ctc_loss(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.ctc_loss(…)`, whose lengths are tensors, or numbers that it need not read."""
    names = tuple(_CTC)
    given = dict(zip(names, args, strict=False)) | kwargs
    if len(args) > len(names) or given.keys() - _CTC.keys() or len(given) < _NEEDED:
        return function_handler(torch.ctc_loss)(space, args, kwargs)
    read_from = tensors_among(given[name].force() for name in names[2:_NEEDED])
    reading = CTC if read_from else CTC_OF_NUMBERS
    return read(space, reading, [given.get(name, Constant(_CTC[name])) for name in names])


#: its first arguments, up to the lengths
_NEEDED = 4


def install() -> None:
    """Register the models."""
    register(internals.pack_padded_sequence, _handler(PACK))
    register(internals.pad_packed_sequence, _handler(PAD))
    register(torch.ctc_loss, _ctc_loss)
