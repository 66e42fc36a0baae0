"""`while_loop`: the condition and the body become graphs of what is carried, and of what either uses besides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch.higher_order.body import Body, free_of_all, record_operator, refusal, unflatten
from stator.pytorch.higher_order.loops import carried, check_carried
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import NotKnown, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Nested, Operator
    from stator.space.space import Space

_NAME = "while_loop"


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`while_loop(cond_fn, body_fn, carried_inputs, additional_inputs)`."""
    if len(args) != 4 or kwargs:
        raise refusal(_NAME, "it wants four arguments: cond_fn, body_fn, carried_inputs, additional_inputs")
    cond_fn, body_fn = args[:2]
    begin, more = [[value.force() for value in space.unpack(arg)] for arg in args[2:]]
    for value in begin:
        if not isinstance(value, TensorValue) and value.cls is not int:
            raise refusal(_NAME, f"it carries {value.describe()}")
    # The rule for fake tensors has symbols of its own, whatever is carried.
    assert space.trace.recorder.shapes.env is not None
    cond = Body(space, _NAME, "cond_fn")
    cond.trace(cond_fn, [*carried(cond, begin), *more])
    if _never(space, cond):
        return args[2]
    body = Body(space, _NAME, "body_fn")
    body.trace(body_fn, [*carried(body, begin), *more])
    body.refuse_outside_results()
    check_carried(space, body, begin, body.leaves)
    free = free_of_all([cond, body])
    graphs = cond.close(free, "cond_fn", bare=True), body.close(free, "body_fn", body.outputs)
    call: tuple[Nested, ...] = (*graphs, tuple(begin), tuple(free))
    return unflatten(space, record_operator(space, _NAME, operator, call, acts=cond.acts or body.acts), body.spec)


def _never(space: Space, cond: Body) -> bool:
    """Whether the condition is False from the start; if it is not known, it must be what the operator takes."""
    (result,) = cond.leaves if len(cond.leaves) == 1 else (None,)
    if isinstance(result, TensorValue) and result.dtype is torch.bool and not result.shape:
        return False
    if result is None or isinstance(result, TensorValue) or result.cls is not bool:
        raise cond.refuse("does not give a boolean")
    known = space.known(result)
    if known is True:
        raise cond.refuse("is always True")
    return known is not NotKnown
