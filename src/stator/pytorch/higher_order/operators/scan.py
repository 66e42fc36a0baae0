"""`scan`: the function that combines the carry with a slice becomes a graph, which the operator runs slice by slice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch.higher_order.body import Body, by_name, record_operator, unflatten
from stator.pytorch.higher_order.loops import carried, check_carried, check_tensors, slices
from stator.space.value import Value

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space

_NAME = "scan"


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`scan(combine_fn, init, xs, additional_inputs)`, all of them flat."""
    combine, *rest = by_name(_NAME, ("combine_fn", "init", "xs", "additional_inputs"), args, kwargs)
    init, xs, more = [[value.force() for value in space.unpack(arg)] for arg in rest]
    begin, over = check_tensors(_NAME, "init", init), check_tensors(_NAME, "xs", xs)
    body = Body(space, _NAME, "combine_fn")
    body.trace(combine, [*carried(body, begin), *slices(body, over, torch.select_copy), *more])
    body.refuse_outside_results()
    check_carried(space, body, begin, body.leaves[: len(begin)])
    if any(isinstance(output, int) for output in body.outputs):
        raise body.refuse("gives numbers")
    free = body.graph.free(body.results)
    graph = body.close(free, "combine_fn", body.outputs)
    call = (graph, list(begin), list(over), tuple(free))
    return unflatten(space, record_operator(space, _NAME, operator, call, acts=body.acts), body.spec)
