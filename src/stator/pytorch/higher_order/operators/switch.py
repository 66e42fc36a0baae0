"""`switch`: all branches become graphs of the same inputs, and one node chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch.higher_order.body import Body, refusal
from stator.pytorch.higher_order.operators.cond import check_operands, chosen_among
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import NotKnown, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space

_NAME = "torch.switch"


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`switch(index, branches, operands)`."""
    if len(args) != 3 or kwargs:
        raise refusal(_NAME, "it wants three arguments: index, branches, operands")
    index, branches, operands = [arg.force() for arg in args]
    functions, inner = space.unpack(branches), space.unpack(operands)
    chosen = space.known(index)
    if chosen is not NotKnown and not isinstance(index, TensorValue):
        return space.call(functions[chosen], inner, {})
    check_operands(space, _NAME, operands)
    bodies = [Body(space, _NAME, f"branch {i}").trace(function, inner) for i, function in enumerate(functions)]
    return chosen_among(space, operator, _NAME, index, tuple(bodies))
