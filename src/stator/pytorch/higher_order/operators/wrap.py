"""`wrap`: the function is called, and that is all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space
    from stator.space.value import Value


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`wrap(func, *args, **kwargs)`."""
    return space.call(args[0], args[1:], kwargs)
