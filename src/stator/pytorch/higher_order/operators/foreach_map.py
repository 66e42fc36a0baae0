"""`foreach_map`: a function of lists of tensors that is called once, kept together for the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch.higher_order.body import Body, record_operator
from stator.pytorch.tensors.tensor import tensors_among

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space
    from stator.space.value import Value

_NAME = "foreach_map"


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`foreach_map(function, *operands)`."""
    body = Body(space, _NAME).trace(args[0], args[1:], kwargs)
    body.refuse_outside_results()
    free = body.graph.free(body.results)
    wanted = torch.is_grad_enabled() and any(value.requires_grad for value in tensors_among(free))
    if wanted and not all(value.requires_grad for value in tensors_among(body.results)):
        raise body.refuse("gives a result without a gradient beside others, which the operator cannot")
    made = record_operator(space, _NAME, operator, (body.close(free, "subgraph"), *free), acts=body.acts)
    return body.answer(made)
