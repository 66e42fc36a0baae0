"""`wrap_with_set_grad_enabled`: a function that is called with gradients on or off."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space
    from stator.space.value import Value


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`wrap_with_set_grad_enabled(enable_grad, wrapped_func, *args, **kwargs)`."""
    switch = space.existing(torch.set_grad_enabled)
    before = space.call(space.existing(torch.is_grad_enabled), [], {})
    space.call(switch, args[:1], {})
    result = space.call(args[1], args[2:], kwargs)
    space.call(switch, [before], {})
    return result
