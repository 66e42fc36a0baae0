"""`torch.cond`: both branches become graphs of the same inputs, and one node chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch.higher_order.body import Body, flatten, free_of_all, record_operator, refusal
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import NotKnown, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space

_NAME = "torch.cond"


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`cond(pred, true_fn, false_fn, operands)`."""
    if len(args) != 4 or kwargs:
        raise refusal(_NAME, "it wants four arguments: pred, true_fn, false_fn, operands")
    pred, true_fn, false_fn, operands = [arg.force() for arg in args]
    inner = space.unpack(operands)
    chosen = space.known(pred)
    if chosen is not NotKnown and not isinstance(pred, TensorValue):
        return space.call(true_fn if chosen else false_fn, inner, {})
    check_operands(space, _NAME, operands)
    true = Body(space, _NAME, "true_fn").trace(true_fn, inner)
    false = Body(space, _NAME, "false_fn").trace(false_fn, inner)
    return chosen_among(space, operator, _NAME, pred, (true, false))


def chosen_among(space: Space, operator: Operator, name: str, index: Value, bodies: tuple[Body, ...]) -> Value:
    """Record an operator that runs one of several graphs of the same inputs, by the index it is given."""
    check_alike(space, name, bodies)
    free = free_of_all(bodies)
    graphs = [body.close(free, f"{body.role}_graph") for body in bodies]
    branches = graphs if len(graphs) == 2 and operator.name() == "cond" else [tuple(graphs)]
    acts = any(body.acts for body in bodies)
    return bodies[0].answer(record_operator(space, name, operator, (index, *branches, tuple(free)), acts=acts))


def check_operands(space: Space, name: str, operands: Value) -> None:
    """What eager checks: the operands are tensors, or numbers of sizes, in nested containers."""
    for leaf in flatten(space, operands)[0]:
        if not isinstance(leaf, TensorValue) and leaf.cls is not int:
            raise refusal(name, f"its operands are not all tensors: one is {leaf.describe()}")


def check_alike(space: Space, name: str, bodies: tuple[Body, ...]) -> None:
    """All must give the same structure, of tensors of their own where others give tensors."""
    first = bodies[0]
    for body in bodies:
        body.refuse_outside_results()
        kinds = [isinstance(leaf, TensorValue) for leaf in body.leaves]
        if kinds != [isinstance(leaf, TensorValue) for leaf in first.leaves]:
            raise refusal(name, f"{body.role} gives another structure than {first.role}")
        for mine, other in zip(body.leaves, first.leaves, strict=True):
            if not isinstance(mine, TensorValue) and not _same(space, mine, other):
                raise refusal(name, f"{body.role} gives {mine.describe()} where {first.role} gives {other.describe()}")


def _same(space: Space, one: Value, other: Value) -> bool:
    known = space.known(one)
    return known is not NotKnown and one.cls is other.cls and known == space.known(other)
