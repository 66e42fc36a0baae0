"""`InvokeQuant()(function, …)`: the function is called, as in eager; the rest is a hint to Inductor."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space
    from stator.space.value import Value


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`invoke_quant_packed(subgraph, *operands, scheme=None, quant_options=None)`."""
    return space.call(args[0], args[1:], {})
