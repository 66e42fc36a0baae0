"""Arithmetic of numbers that are known when the graph has run, which cannot fail: a divisor is known not to be zero.

    print(tokens / (time.perf_counter() - begun))

may divide by zero. That error would have to come after what the program does before it, which is done when all numbers
are computed. So such a division breaks the graph, at its end: nothing is recorded after a clock has been read. So does

    if time.perf_counter() - begun > 1:
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
#: what gives a bool: which of the two objects it is shows in too many places for it to be known later
_CONDITIONS = frozenset(
    id(vars(cls)[f"__{name}__"]) for cls in (int, float) for name in ("bool", "lt", "le", "eq", "ne", "gt", "ge")
)
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
    if (found is None and id(host) not in _CONDITIONS) or kwargs:
        return None
    values = [arg.force() for arg in args]
    deferred = next((value for value in values if isinstance(value, DeferredNumber)), None)
    if deferred is None:
        return None
    if found is None:
        raise Unsupported(_condition_on(deferred))
    cls, takes, gives, divisor = found
    if len(values) != 2 or values[0].cls is not cls:
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


def _condition_on(number: DeferredNumber) -> errors.Break:
    brk = errors.DataDependentBranch("a condition", known_later=number.depends_on())
    return brk.advising("decide outside of the compiled function, or leave the break: it is cheap after all operations")
