"""`//` of floats in tensors, as CPython has it: `torch.floor_divide` rounds otherwise, with Inductor above all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Calling", "quotient"]

#: calls a function of torch by its name, on what stands for tensors
Calling: TypeAlias = "Callable[..., object]"


def quotient(call: Calling, divided: object, divisor: object) -> object:
    """The whole number below the quotient, rounded as CPython's `float_divmod` rounds it.

    Its sign is that of the quotient, if it is zero too: not that of what is given here.
    """
    rest = call("fmod", divided, divisor)
    to_zero = call("div", call("sub", divided, rest), divisor)
    signs_differ = call("ne", call("lt", divisor, 0.0), call("lt", rest, 0.0))
    exact = call("sub", to_zero, call("mul", call("ne", rest, 0.0), call("mul", signs_differ, 1.0)))
    lower = call("floor", exact)
    return call("add", lower, call("gt", call("sub", exact, lower), 0.5))
