"""Operations whose C++ code looks at the contents of an argument, which tensors without data do not have.

Run on fake tensors they fail at best. Where such an argument is a tensor, they are given the numbers in it, if these
are known, and break the graph if not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.tensors.calls import function_handler, method_handler
from stator.pytorch.tensors.known import contents
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import NONE, Handler, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space

_NAMES = ("indices_or_sections", "tensor_indices_or_sections", "indices")


def _by_numbers(host: Host, otherwise: Handler) -> Handler:
    """`tensor_split(x, sections, …)`, whose sections are a number or a list of numbers, or a tensor of these."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        name = next((name for name in _NAMES if name in kwargs), None)
        given = (args[1] if len(args) > 1 else kwargs.get(name or "", NONE)).force()
        if not isinstance(given, TensorValue):
            return otherwise(space, args, kwargs)
        known = contents(space.trace.recorder, given)
        if known is None or known.dtype is not torch.int64 or known.dim() > 1 or known.device.type != "cpu":
            raise Unsupported(errors.DataDependentValue(describe_callable(host)))
        others = {key: value for key, value in kwargs.items() if key != name}
        return otherwise(space, [args[0], space.fresh(known.tolist()), *args[2:]], others)

    return handler


def install() -> None:
    """Register the models."""
    register(torch.tensor_split, _by_numbers(torch.tensor_split, function_handler(torch.tensor_split)))
    method: Function = internals.TensorBase.tensor_split
    register(method, _by_numbers(method, method_handler(method, "tensor_split")))
