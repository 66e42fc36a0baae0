"""`torch.batch_norm` with a momentum that varies: that of `nn.BatchNorm2d(8, momentum=None)` is 1 / number of batches.

No operator takes a symbol for what its schema calls a float. As the results depend on the momentum through the moving
averages alone, an operator of Stator's own writes these, by the same call with the number out of a tensor; the call in
the graph, which autograd follows, writes to copies.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.own_operators import define
from stator.pytorch.shapes.number_operands import held, is_float
from stator.pytorch.tensors.calls import function_handler
from stator.pytorch.tensors.recording import record_function, record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import register
from stator.space.value import Constant

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["install"]

_batch_norm: Any = internals.VariableFunctions.batch_norm
_otherwise, _around = function_handler(_batch_norm), function_handler(torch.nn.functional.batch_norm)
#: input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled
_ARGUMENTS = 9
_AVERAGES, _TRAINING, _MOMENTUM = slice(3, 5), 5, 6


@functools.cache
def _averages() -> Operator:
    """The operator that writes the moving averages."""

    def run(*args: Any) -> None:
        tensors, (training, momentum, *others) = args[:_TRAINING], args[_TRAINING:]
        torch.batch_norm(*tensors, training, momentum.item(), *others)

    tensors = "Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var"
    others = "bool training, Tensor momentum, float eps, bool cudnn_enabled"
    return define("moving_averages", f"({tensors}, {others}) -> ()", run, lambda *args: None)


def _model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The function in C++."""
    if len(args) != _ARGUMENTS or not is_float(args[_MOMENTUM].force()):
        return _otherwise(space, args, kwargs)
    given, averages = [arg.force() for arg in args], [arg.force() for arg in args[_AVERAGES]]
    if not all(isinstance(each, TensorValue) for each in averages):
        return _otherwise(space, [*args[:_MOMENTUM], Constant(0.0), *args[_MOMENTUM + 1 :]], kwargs)
    if space.known(given[_TRAINING]):
        momentum = held(space.trace.recorder, given[_MOMENTUM])
        apart = [record_method(space, "detach", each) if isinstance(each, TensorValue) else each for each in given[:3]]
        record_function(space, _averages(), *apart, *averages, given[_TRAINING], momentum, *given[_MOMENTUM + 1 :])
        averages = [record_method(space, "clone", each) for each in averages]
    return _otherwise(space, [*given[:3], *averages, given[_TRAINING], Constant(0.0), *given[_MOMENTUM + 1 :]], kwargs)


def _layer(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The function of Python around it."""
    momentum = kwargs.get("momentum") or (args[_MOMENTUM] if len(args) > _MOMENTUM else Constant(None))
    if not is_float(momentum.force()):
        return _around(space, args, kwargs)
    function: Any = space.existing(torch.nn.functional.batch_norm)
    found: Value = function.inline(space, args, kwargs, False)
    return found


def install() -> None:
    """Register the models."""
    register(_batch_norm, _model)
    register(torch.nn.functional.batch_norm, _layer)
