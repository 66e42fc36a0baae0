"""`hints_wrapper`: a function that is called once, with hints for the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch.higher_order.body import Body, by_name, record_operator, refusal
from stator.space.value import NotKnown, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space

_NAME = "hints_wrapper"


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`hints_wrapper(body_fn, args, kwargs, hints)`."""
    function, inner, named, hinted = by_name(_NAME, ("body_fn", "args", "kwargs", "hints"), args, kwargs)
    hints = space.known(hinted.force())
    if hints is NotKnown or space.known(named.force()) != {}:
        raise refusal(_NAME, "its hints are not known, or it has keyword arguments")
    body = Body(space, _NAME, "body_fn").trace(function, space.unpack(inner))
    body.refuse_outside_results()
    free = body.graph.free(body.results)
    graph = body.close(free, "hints_wrapper_body")
    return body.answer(
        record_operator(space, _NAME, operator, (graph, tuple(free), {}), {"hints": hints}, acts=body.acts)
    )
