"""`flex_attention`: what modifies a score, and what masks it, become graphs of one score and its position.

    flex_attention(q, k, v, score_mod=lambda score, b, h, i, j: score + bias[h])

The operator runs both for all positions at once, by vmap, where `bias[h]` takes an element for each head. So that is
what it means while they are traced (`ScalarIndexing`); elsewhere it would ask for the number in `h`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch.higher_order.body import Body, record_operator, refusal
from stator.pytorch.tensors.indexing import ScalarIndexing
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import NotKnown, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Fake, Operator
    from stator.space.space import Space

_NAME = "flex_attention"


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`flex_attention(query, key, value, score_mod, block_mask, scale, kernel_options)`."""
    if len(args) != 7 or kwargs:
        raise refusal(_NAME, "it is called with captured buffers, or by name")
    query, key, value, score_mod, block_mask, scale, options = [arg.force() for arg in args]
    if not isinstance(query, TensorValue):
        raise refusal(_NAME, "the query is no tensor")
    *blocks, mask_mod = [part.force() for part in space.unpack(block_mask)]
    kernel_options = space.known(options)
    if kernel_options is NotKnown:
        raise refusal(_NAME, "its kernel_options are not known")
    with space.trace.recorder.fakes.executor.mode:
        score = query.fake.new_empty((), requires_grad=query.requires_grad)
    scored, masked = _traced(space, "score_mod", score_mod, query, [score]), _traced(space, "mask_mod", mask_mod, query)
    free = [body.graph.free(body.results) for body in (scored, masked)]
    graphs = scored.close(free[0], "score_mod", bare=True), masked.close(free[1], "mask_fn", bare=True)
    call = (
        *(query, key, value, graphs[0], (*blocks, graphs[1]), scale, kernel_options),
        *(tuple(free[0]), tuple(free[1])),
    )
    return space.new_tuple(record_operator(space, _NAME, operator, call, acts=scored.acts or masked.acts))


def _traced(space: Space, role: str, function: Value, query: TensorValue, first: list[Fake] | None = None) -> Body:
    """The graph of a function of a position: of the batch, the head, the query and the key."""
    body = Body(space, _NAME, role)
    with space.trace.recorder.fakes.executor.mode:
        likes = [*(first or []), *[query.fake.new_empty((), dtype=torch.int32) for _ in range(4)]]
    with space.trace.extension(ScalarIndexing).by_operator():
        body.trace(function, [body.graph.example(like) for like in likes])
    if len(body.leaves) != 1 or not isinstance(body.leaves[0], TensorValue) or body.leaves[0].shape:
        raise body.refuse("does not give a tensor without dimensions")
    return body
