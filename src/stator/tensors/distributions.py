"""What `torch.distributions` needs besides being traced: it checks its arguments with operators made for that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.objects.protocol import Handler, register
from stator.objects.value import Value
from stator.tensors.calls import function_handler
from stator.tensors.tensor import TensorValue

if TYPE_CHECKING:
    from stator.objects.space import Space


def _reduction(host: Any, method: Any) -> Handler:
    """`torch._is_all_true(x)` is `x.all()`, which unlike it can be run on fake tensors of symbolic sizes."""
    otherwise = function_handler(host)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if len(args) == 1 and not kwargs:
            tensor = args[0].force()
            if isinstance(tensor, TensorValue) and tensor.dtype is torch.bool:
                return space.call_builtin(method, [tensor], {})
        return otherwise(space, args, kwargs)

    return handler


def install() -> None:
    """Register the models."""
    register(torch._is_all_true, _reduction(torch._is_all_true, torch.Tensor.all))
    register(torch._is_any_true, _reduction(torch._is_any_true, torch.Tensor.any))
