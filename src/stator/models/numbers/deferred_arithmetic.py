"""Arithmetic of numbers that are known when the graph has run, which cannot fail: a divisor is known not to be zero.

    print(tokens / (time.perf_counter() - begun))

may divide by zero. That error would have to come after what the program does before it, which is done when all numbers
are computed. So such a division breaks the graph, at its end: nothing is recorded after a clock has been read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator import errors
from stator.space.deferred import DeferredNumber
from stator.space.facts import plain_name
from stator.space.protocol import CALL_HOOKS, NOT_IMPLEMENTED
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.space.host_types import Host
    from stator.space.space import Space
    from stator.space.value import Value

_NAMES = ("add", "sub", "mul", "truediv", "floordiv", "mod")
_DIVISIONS = _NAMES[3:]
#: the methods of numbers, by their ids, with what they take, what they give, and which operand divides
_METHODS: dict[int, tuple[type, tuple[type, ...], type, int | None]] = {
    id(vars(cls)[f"__{prefix}{name}__"]): (
        cls,
        takes,
        float if name == "truediv" else cls,
        (0 if prefix else 1) if name in _DIVISIONS else None,
    )
    for cls, takes in ((int, (int,)), (float, (int, float)))
    for name in _NAMES
    for prefix in ("", "r")
}


def _compute(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A method of numbers (see protocol.CALL_HOOKS)."""
    found = _METHODS.get(id(host))
    if found is None or len(args) != 2 or kwargs:
        return None
    cls, takes, gives, divisor = found
    values = [arg.force() for arg in args]
    if not any(isinstance(value, DeferredNumber) for value in values) or values[0].cls is not cls:
        return None
    if not all(isinstance(value, DeferredNumber) or value.constant or value.symbolic for value in values):
        return None
    if values[1].cls not in takes:
        return NOT_IMPLEMENTED if values[1].cls in (int, float) else None
    if divisor is not None and not (values[divisor].constant and values[divisor].host):
        case = "with a divisor that is known when the graph has run, and may be zero"
        brk = errors.UnsupportedUse(plain_name(host), case)
        raise Unsupported(brk.advising("leave the break, which is cheap at the end, or divide outside"))
    return DeferredNumber(gives, host, values)


CALL_HOOKS.insert(0, _compute)  # symbols compute with each other only
