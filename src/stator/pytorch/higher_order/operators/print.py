"""`torch._higher_order_ops.print`: it stays in the graph, and prints when the graph runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch.higher_order.body import refusal, tried
from stator.pytorch.tensors.lowering import Call, lower_call
from stator.space.value import Value

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space

_NAME = "torch._higher_order_ops.print"


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`print(format_str, *args, **kwargs)`."""
    if space.trace.effects.acts():
        raise refusal(_NAME, "what the program has printed or done before comes after the graph, and this in it")
    call = lower_call(space, Call(operator, "call_function", operator), args, kwargs)
    call.acts = call.only_shows = True
    return tried(_NAME, lambda: space.trace.recorder.record(call))
