"""What keeps optimizers out of a graph: functions torch has marked for Dynamo's sake, and tensors given as scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.optim

from stator import errors
from stator.objects.protocol import NONE, Handler, TailCall, register
from stator.objects.value import Unsupported, Value
from stator.tensors.calls import function_handler, method_handler
from stator.tensors.tensor import TensorValue
from stator.trace import INTERCEPTS

if TYPE_CHECKING:
    from stator.objects.space import Space


def _nothing() -> None:
    """What the wrapper is looked at on."""


_DISABLING: Any = torch._disable_dynamo(_nothing).__code__


def _intercept(host: Any) -> Handler | None:
    """torch's own marks for Dynamo: what it cannot trace, Stator may; breaks in user code are wanted."""
    if host.__code__ is _DISABLING:
        return lambda space, args, kwargs: TailCall(space.existing(host.__wrapped__), args, kwargs)
    if host.__module__ == "torch._dynamo.decorators" and host.__name__ == "graph_break":
        return _graph_break
    return None


def _graph_break(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch._dynamo.graph_break()`."""
    if str(space.trace.frame.globals.get("__name__")).startswith("torch."):
        return NONE
    message = kwargs.get("msg", args[0] if args else NONE)
    raise Unsupported(errors.ExplicitBreak(str(space.known(message) or "no message")))


# -- tensors as scalars -----------------------------------------------------------------------------------------------

#: `self + value * a / b`, `self + value * a * b`: what is done to the product of the first two
_LAST: dict[str, Any] = {"addcdiv": torch.Tensor.div, "addcmul": torch.Tensor.mul}
#: data types in which the kernel computes step by step
_EXACT = (torch.float32, torch.float64)


def _scaled(host: Any, name: str, otherwise: Handler) -> Handler:
    """`addcdiv` and its like: with a tensor as `value`, the arithmetic that the kernel does, as operations."""
    mul, last = torch.Tensor.mul, _LAST[name]
    add = torch.Tensor.add_ if host.__name__.endswith("_") else torch.Tensor.add

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        scale = kwargs.get("value", NONE).force()
        if not isinstance(scale, TensorValue) or len(args) != 3:
            return otherwise(space, args, kwargs)
        operands = [arg.force() for arg in args]
        if not all(isinstance(t, TensorValue) and t.dtype in _EXACT for t in [*operands, scale]) or len(scale.shape):
            return otherwise(space, args, kwargs)
        product = space.call_builtin(mul, [scale, operands[1]], {})
        quotient = space.call_builtin(last, [product, operands[2]], {})
        return space.call_builtin(add, [operands[0], quotient], {})

    return handler


def install() -> None:
    """Register the models."""
    INTERCEPTS.insert(0, _intercept)
    for name in _LAST:
        for method in (getattr(torch.Tensor, name), getattr(torch.Tensor, f"{name}_")):
            register(method, _scaled(method, name, method_handler(method, method.__name__)))
        function = getattr(torch, name)
        register(function, _scaled(function, name, function_handler(function)))
