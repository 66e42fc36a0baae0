"""`wrap` and its relatives: the function is called once, in eager as in a compiled graph, and that is all.

Their functions are traced into the graph around them, which is what they are for: no backend looks for the operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space
    from stator.space.value import Value


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`wrap(func, *args, **kwargs)`."""
    return space.call(args[0], args[1:], kwargs)
