"""`wrap_with_autocast`: a function that is called where operations choose their types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.space.value import Constant

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space
    from stator.space.value import Value


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`wrap_with_autocast(device_type, dtype, enabled, cache_enabled, wrapped_func, *args, **kwargs)`."""
    context = space.call(space.existing(torch.autocast), args[:4], {})
    space.call(space.getattr(context, "__enter__"), [], {})
    result = space.call(args[4], args[5:], kwargs)
    space.call(space.getattr(context, "__exit__"), [Constant(None)] * 3, {})
    return result
