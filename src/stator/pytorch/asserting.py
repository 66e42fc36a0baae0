"""Operators that tell whether a condition holds, as torch.distributions asks of its arguments, and assertions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.tensors.calls import function_handler
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import Handler, register
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space

__all__ = ["install"]


def _reduction(host: Host, method: Function) -> Handler:
    """`torch._is_all_true(x)` is `x.all()`, which unlike it can be run on fake tensors of symbolic sizes."""
    otherwise = function_handler(host)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) == 1 and not kwargs:
            tensor = args[0].force()
            if isinstance(tensor, TensorValue) and tensor.dtype is torch.bool:
                return space.call_builtin(method, [tensor], {})
        return otherwise(space, args, kwargs)

    return handler


def _asserting(host: Host) -> Handler:
    """An assertion about a tensor: AOTAutograd drops one that has no message."""
    otherwise, told = function_handler(host), function_handler(internals.assert_async_msg)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) + len(kwargs) == 1 and not space.trace.recorder.keeps_order:
            return told(space, [*args, *kwargs.values(), Constant("the condition does not hold")], {})
        return otherwise(space, args, kwargs)

    return handler


def install() -> None:
    """Register the models."""
    register(internals.is_all_true, _reduction(internals.is_all_true, torch.Tensor.all))
    register(internals.is_any_true, _reduction(internals.is_any_true, torch.Tensor.any))
    for host in (internals.assert_async, internals.assert_async_op, internals.assert_async_op.default):
        register(host, _asserting(host))
