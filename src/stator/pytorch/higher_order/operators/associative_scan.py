"""`associative_scan`, pointwise: the function that combines two elements becomes a graph of one pair.

The operator runs the graph on many pairs at once, as it is. So it may hold only operations whose result at a place
depends on what is at that place, which torch marks (`Tag.pointwise`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch.fake.modes import Listing
from stator.pytorch.higher_order.body import Body, by_name, record_operator, unflatten
from stator.pytorch.higher_order.loops import check_carried, check_tensors, slices
from stator.space.value import Value

if TYPE_CHECKING:
    from stator.pytorch.graph.subgraph import GraphOperand
    from stator.pytorch.types import GraphValue, Operator
    from stator.space.space import Space

_NAME = "associative_scan"


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`associative_scan(combine_fn, xs, additional_inputs)`, all of them flat."""
    combine, xs, more = by_name(_NAME, ("combine_fn", "xs", "additional_inputs"), args, kwargs)
    over = check_tensors(_NAME, "xs", [value.force() for value in space.unpack(xs)])
    body = Body(space, _NAME, "combine_fn")
    pair = [*slices(body, over, torch.select_copy), *slices(body, over, torch.select_copy)]
    body.trace(combine, [*pair, *space.unpack(more)])
    body.refuse_outside_results()
    check_carried(space, body, pair[: len(over)], body.leaves)
    free = body.graph.free(body.results)
    inputs = [*body.graph.given, *free]
    graph = body.close(free, "associative_scan_combine_fn", body.outputs)
    if not _is_pointwise(space, graph, inputs):
        raise body.refuse("does not combine each place on its own, as combine_mode='pointwise' wants")
    made = record_operator(space, _NAME, operator, (graph, list(over), tuple(free)), acts=body.acts)
    return unflatten(space, made, body.spec)


def _is_pointwise(space: Space, graph: GraphOperand, inputs: list[GraphValue]) -> bool:
    with space.trace.recorder.fakes.executor.mode, torch.no_grad(), Listing() as seen:
        graph.fake(*[value.fake for value in inputs])
    return all(torch.Tag.pointwise in operator.tags for operator, _, _ in seen.found)
