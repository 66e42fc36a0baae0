"""`strict_mode`: a function that is called once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch.higher_order.body import Body, record_operator, refusal

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space
    from stator.space.value import Value

_NAME = "strict_mode"


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`strict_mode(callable, operands)`."""
    if len(args) != 2 or kwargs:
        raise refusal(_NAME, "it wants two arguments: callable, operands")
    body = Body(space, _NAME, "the function").trace(args[0], space.unpack(args[1]))
    body.refuse_outside_results()
    free = body.graph.free(body.results)
    call = (body.close(free, "strict_mode_body"), tuple(free))
    return body.answer(record_operator(space, _NAME, operator, call, acts=body.acts))
