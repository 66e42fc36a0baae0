"""`inline_asm_elementwise`: assembly, which only a backend for its processor can run; no function of the program's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch.higher_order.body import tried
from stator.pytorch.tensors.lowering import Call, lower_call

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space
    from stator.space.value import Value


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`inline_asm_elementwise(*inputs, asm_str, constraints, dtype, is_pure=True, pack=1)`."""
    call = lower_call(space, Call(operator, "call_function", operator), args, kwargs)
    return tried(operator.name(), lambda: space.trace.recorder.record(call))
