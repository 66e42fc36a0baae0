"""`dynamo_bypassing_wrapper`: what a function makes of another is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space
    from stator.space.value import Value


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`dynamo_bypassing_wrapper(wrapper_fn, inner_fn, *args, **kwargs)`."""
    return space.call(space.call(args[0], [args[1]], {}), args[2:], kwargs)
