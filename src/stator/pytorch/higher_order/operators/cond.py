"""`torch.cond`: both branches become graphs of the same inputs, and one node chooses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch.higher_order.body import Body, flatten, free_of_all, record_operator, refusal, unflatten
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
    chosen = chosen_leaves(space, name, bodies)
    free = free_of_all(bodies)
    graphs = [body.close(free, f"{body.role}_graph", [body.outputs[i] for i in chosen]) for body in bodies]
    branches = graphs if operator.name() == "cond" else [tuple(graphs)]
    acts = any(body.acts for body in bodies)
    made = record_operator(space, name, operator, (index, *branches, tuple(free)), acts=acts)
    leaves = list(bodies[0].leaves)
    for i, value in zip(chosen, made, strict=True):
        leaves[i] = value
    return unflatten(space, leaves, bodies[0].spec)


def check_operands(space: Space, name: str, operands: Value) -> None:
    """What eager checks: the operands are tensors, or numbers of sizes, in nested containers."""
    for leaf in flatten(space, operands)[0]:
        if not isinstance(leaf, TensorValue) and leaf.cls is not int:
            raise refusal(name, f"its operands are not all tensors: one is {leaf.describe()}")


def chosen_leaves(space: Space, name: str, bodies: tuple[Body, ...]) -> list[int]:
    """Which of the leaves the branch decides: tensors, and ints that differ. Where they are arranged is the same."""
    first = bodies[0]
    for body in bodies:
        body.refuse_outside_results()
        if len(body.leaves) != len(first.leaves) or not space.known(space.compare("==", body.spec, first.spec)):
            raise refusal(name, f"{body.role} gives another structure than {first.role}")
    rows = list(zip(*[body.leaves for body in bodies], strict=True))
    return [i for i, row in enumerate(rows) if _is_chosen(space, name, bodies, row)]


def _is_chosen(space: Space, name: str, bodies: tuple[Body, ...], row: tuple[Value, ...]) -> bool:
    """Whether what the branches give in one place is chosen among; else all give the same."""
    if all(isinstance(leaf, TensorValue) for leaf in row):
        return True
    known = [space.known(leaf) for leaf in row]
    if len({leaf.cls for leaf in row}) == 1 and NotKnown not in known:
        if all(host == known[0] for host in known):
            return False
        if row[0].cls is int:
            assert space.trace.recorder.shapes.env is not None  # in which the result is a symbol
            return True
    shown = zip(bodies, row, strict=True)
    raise refusal(name, "; ".join(f"{body.role} gives {leaf.describe()}" for body, leaf in shown))
