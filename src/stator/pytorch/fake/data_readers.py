"""Operations whose C++ code looks at the contents of an argument, which tensors without data do not have.

Run on fake tensors they fail at best. They break the graph where such an argument is a tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.tensors.calls import function_handler, method_handler
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.protocol import Handler, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space

Reads = Callable[[list[Value], dict[str, Value]], bool]


def _tensor_at(*positions: int, names: tuple[str, ...]) -> Reads:
    def reads(args: list[Value], kwargs: dict[str, Value]) -> bool:
        given = [args[i] for i in positions if i < len(args)] + [kwargs[n] for n in names if n in kwargs]
        return bool(tensors_among(map(Value.force, given)))

    return reads


def _guarded(host: Host, reads: Reads, otherwise: Handler) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if reads(args, kwargs):
            raise Unsupported(errors.DataDependentValue(describe_callable(host)))
        return otherwise(space, args, kwargs)

    return handler


def install() -> None:
    """Register the models."""
    sections = _tensor_at(1, names=("indices_or_sections", "tensor_indices_or_sections", "indices"))
    register(torch.tensor_split, _guarded(torch.tensor_split, sections, function_handler(torch.tensor_split)))
    method: Function = internals.TensorBase.tensor_split
    register(method, _guarded(method, sections, method_handler(method, "tensor_split")))
