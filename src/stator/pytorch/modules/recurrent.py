"""torch.lstm and its relations: a backend is given one operator, as what it makes of them is not what they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.sequences.calls import read
from stator.pytorch.sequences.operators import DROPPING, PADDED, PADDED_DROPPING, RECURRENT
from stator.pytorch.tensors.calls import function_handler
from stator.pytorch.tensors.lowering import Call
from stator.pytorch.tensors.recording import record, record_function
from stator.pytorch.tensors.subclass import dispatched
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.protocol import Handler, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.sequences.drawing import Drawing
    from stator.pytorch.types import Host, Nested
    from stator.space.space import Space

_C: Any = internals.VariableFunctions
#: input, hidden state, parameters, has_biases, num_layers, dropout, train, bidirectional, batch_first
_ARGUMENTS = 9
#: of the input: steps, batch, features
_DIMENSIONS = 3


def _handler(host: Host) -> Handler:
    otherwise = function_handler(host)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if len(args) == _ARGUMENTS and not isinstance(space.known(args[3].force()), bool):
            return _packed(space, host, args)
        if len(args) == _ARGUMENTS and not space.trace.recorder.keeps_order:
            whole = _stays_whole(space, args[0].force())
            if _drops(space, args[5:7]):
                if not whole or not _is_repeatable(args[0].force()):
                    why = "taken apart, it drops out other elements"
                    raise Unsupported(errors.UnsupportedTensorOperation(f"torch.{host.__name__}", why))
                return _dropping(space, PADDED_DROPPING[host], host, args)
            if whole:
                return read(space, PADDED[host], args)
            if _only_parameters_want_gradients(space, host, args):
                return record_function(space, lstm_with_gradients, *args, **kwargs)
        return otherwise(space, args, kwargs)

    return handler


def _stays_whole(space: Space, given: Value) -> bool:
    """Whether one operator stands for the layer: not in the body of another, which may want more of it than gradients,
    nor where autocast says what type the steps compute in."""
    nodes = space.trace.recorder.nodes
    if nodes.graph is not nodes.whole or not isinstance(given, TensorValue) or given.meta is None:
        return False
    return len(given.shape) == _DIMENSIONS and not torch.is_autocast_enabled(given.device.type)


def _packed(space: Space, host: Host, args: list[Value]) -> Value:
    """A layer on a packed sequence: data, batch sizes, hidden state, parameters …, dropout, train, bidirectional."""
    if not _drops(space, args[6:8]):
        return read(space, RECURRENT[host], args)
    if not _is_repeatable(args[0].force()):
        raise Unsupported(errors.DataDependentValue(f"torch.{host.__name__}"))  # the gradients' run would draw again
    return _dropping(space, DROPPING[host], host, args)


def _drops(space: Space, args: list[Value]) -> bool:
    """Whether elements are dropped out between the layers, by the arguments `dropout` and `train`."""
    dropout, train = args
    return space.known(dropout.force()) != 0 and space.known(train.force()) is not False


def _is_repeatable(given: Value) -> bool:
    """Whether the same elements can be dropped out again: torch's generator alone says which."""
    return isinstance(given, TensorValue) and given.device.type == "cpu"


def _dropping(space: Space, reading: Drawing, host: Host, args: list[Value]) -> Value:
    """A layer in training that drops out elements: the operator gives the generator's state, too."""
    overridden = dispatched(space, host, args, {})
    if overridden is not None:
        return overridden
    target = reading.real if space.trace.recorder.keeps_order else reading.operator
    made = record(space, Call(reading.operator, "call_function", target), args, {})
    return space.new_tuple(space.unpack(made)[:-1])


def _only_parameters_want_gradients(space: Space, host: Host, args: list[Value]) -> bool:
    """Whether an LSTM would lose its gradients: taken apart, it looks at its input alone to see if any are wanted."""
    given = args[0].force()
    if host is not _C.lstm or not torch.is_grad_enabled() or not isinstance(given, TensorValue) or given.requires_grad:
        return False
    others = [value.force() for group in args[1:3] for value in space.unpack(group)]
    return any(tensor.requires_grad for tensor in tensors_among(others))


def lstm_with_gradients(given: torch.Tensor, *args: Any) -> Nested:
    """`torch.lstm`, whose input wants gradients that nobody asks for."""
    return _C.lstm(given.detach().requires_grad_(), *args)


def install() -> None:
    """Register the models."""
    for host in (_C.lstm, _C.gru, _C.rnn_tanh, _C.rnn_relu):
        register(host, _handler(host))
