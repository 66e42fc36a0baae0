"""Calls that run the autograd engine: a break, with all that is inside left to Python in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.autograd

from stator import errors
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
    for host in (torch.autograd.grad, torch.autograd.backward):
        register(host, _refusing(host))
