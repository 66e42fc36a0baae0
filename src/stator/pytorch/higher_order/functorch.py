"""Transforms of torch.func but vmap: their calls are left to Python, with all that runs inside of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch.func

from stator import errors
from stator._core import CodePolicy, set_code_policy
from stator.pytorch import internals
from stator.space.protocol import Handler, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    import torch

    from stator.pytorch.types import Function
    from stator.space.space import Space


def _refusing(name: str) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Unsupported(errors.UnsupportedTensorOperation(name, "transforms of functions are not traced"))

    return handler


def install() -> None:
    """Register the models."""
    set_code_policy(
        internals.vmap_impl.__code__, CodePolicy.RUN_RECURSIVELY
    )  # vmap has a model of its own, which may leave it to Python
    hosts: list[Function] = [torch.func.linearize, torch.func.vjp, torch.func.jvp]
    hosts += [internals.grad_impl, internals.grad_and_value_impl, internals.vjp_impl, internals.jvp_impl]
    for host in hosts:
        register(host, _refusing(f"torch.func.{host.__name__.strip('_').removesuffix('_impl')}"))
        set_code_policy(host.__code__, CodePolicy.RUN_RECURSIVELY)
