"""torch.lstm and its relations, where what a backend makes of them is not what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.tensors.calls import function_handler
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.protocol import Handler, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space

_C: Any = internals.VariableFunctions
#: input, hidden state, parameters, has_biases, num_layers, dropout, train, bidirectional, batch_first
_ARGUMENTS = 9


def _handler(host: Host) -> Handler:
    otherwise = function_handler(host)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if len(args) == _ARGUMENTS and not isinstance(space.known(args[3].force()), bool):
            raise Unsupported(errors.DataDependentValue(f"torch.{host.__name__}"))  # of a packed sequence
        if len(args) == _ARGUMENTS and not space.trace.recorder.keeps_order:
            why = _difference(space, host, args)
            if why is not None:
                raise Unsupported(errors.UnsupportedTensorOperation(f"torch.{host.__name__}", why))
        return otherwise(space, args, kwargs)

    return handler


def _reading(host: Host) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Unsupported(errors.DataDependentValue(f"torch.{host.__name__}"))

    return handler


def _difference(space: Space, host: Host, args: list[Value]) -> str | None:
    """Why the operation, taken apart by AOTAutograd, does something else."""
    if space.known(args[5].force()) != 0 and space.known(args[6].force()) is not False:
        return "taken apart, it drops out other elements"
    given = args[0].force()
    if host is not _C.lstm or not torch.is_grad_enabled() or not isinstance(given, TensorValue) or given.requires_grad:
        return None
    params = [value.force() for value in space.unpack(args[2])]
    if any(tensor.requires_grad for tensor in tensors_among(params)):
        return "taken apart, it looks at its input alone to see if gradients are wanted"
    return None


def install() -> None:
    """Register the models."""
    for host in (_C.lstm, _C.gru, _C.rnn_tanh, _C.rnn_relu):
        register(host, _handler(host))
    # They read lengths where they lie, though fake tensors lie nowhere: not every build notices.
    for host in (internals.pack_padded_sequence, internals.pad_packed_sequence):
        register(host, _reading(host))
