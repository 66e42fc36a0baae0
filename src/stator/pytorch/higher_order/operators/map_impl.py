"""`map`: the function becomes a graph of one slice, which the operator runs for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch.higher_order.body import Body, record_operator, refusal, unflatten
from stator.pytorch.higher_order.loops import check_tensors, slices
from stator.space.value import Value

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space

_NAME = "map"


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`map_impl(f, xs, pos_args)`, all of them flat."""
    if len(args) != 3 or kwargs:
        raise refusal(_NAME, "it wants three arguments: f, xs, pos_args")
    xs, more = [[value.force() for value in space.unpack(arg)] for arg in args[1:]]
    over = check_tensors(_NAME, "xs", xs)
    body = Body(space, _NAME, "f")
    body.trace(args[0], [*slices(body, over, torch.select), *more])
    body.refuse_outside_results()
    if any(isinstance(output, int) for output in body.outputs):
        raise body.refuse("gives numbers")
    free = body.graph.free(body.results)
    graph = body.close(free, "map_body", body.outputs)
    made = record_operator(space, _NAME, operator, (graph, list(over), list(free)), acts=body.acts)
    return unflatten(space, made, body.spec)
