"""Calls that run the autograd engine or put hooks into it: a break, all inside left to Python in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.autograd
import torch.utils.hooks

from stator import errors
from stator._core import set_code_policy
from stator.objects.protocol import Handler, register
from stator.objects.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.objects.space import Space


def _refusing(host: Any) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Unsupported(errors.AutogradCall(f"{host.__module__}.{host.__qualname__}"))

    return handler


def install() -> None:
    """Register the models."""
    hooks = torch.utils.hooks.BackwardHook
    for host in (torch.autograd.grad, torch.autograd.backward, hooks.setup_input_hook, hooks.setup_output_hook):
        register(host, _refusing(host))
    # What the engine calls back (hooks, backward methods, checkpoints) runs as it was, or as eager runs it.
    calling = (torch.autograd.grad, torch.autograd.backward, torch.Tensor.backward, torch.autograd.Function.apply)
    for function in calling:
        set_code_policy(getattr(function, "__func__", function).__code__, 2)
