"""`out_dtype`: an operator of torch's whose result is of another type than usual; no function of the program's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.pytorch.higher_order.body import record_one, refusal

if TYPE_CHECKING:
    from stator.pytorch.types import Operator
    from stator.space.space import Space
    from stator.space.value import Value

_NAME = "out_dtype"


def trace(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`out_dtype(op, output_dtype, *args)`."""
    if len(args) < 2 or kwargs:
        raise refusal(_NAME, "it wants an operator and a dtype")
    called = args[0].force()
    host = space.identity(called)
    space.guard_identity(called)
    return record_one(space, _NAME, operator, (host, *[arg.force() for arg in args[1:]]))
