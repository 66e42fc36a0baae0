"""`int` and `bool`: construction from values; their methods run for real."""

from __future__ import annotations

from stator._core import has_buffer
from stator.host.version_facts import INT_TRUNCATES
from stator.models.classes.payload import PayloadValue
from stator.space.operands import bool_value, exact_number, hooked, known_host, literal
from stator.space.protocol import FALSE, LAST_RESORTS, TRUE, builtin
from stator.space.space import Space
from stator.space.value import Constant, Value

_TEXTS = (str, bytes, bytearray)


@builtin(int.__new__)
def int_new(space: Space, cls: Value, number: Value | None = None, /, base: Value | None = None) -> Value:
    owner = known_host(space, cls, "int.__new__")
    if number is None:
        result: Value = Constant(0) if base is None else space.run_known(int, [], {"base": base})
    elif base is not None:
        result = hooked(space, int, [number.force(), space.index(base).force()])
    else:
        result = to_int(space, number)
    return PayloadValue.of_class(space, owner, int, result)


def to_int(space: Space, value: Value) -> Value:
    """`PyNumber_Long`: an exact int of whatever has `__int__` or `__index__`, or of text."""
    value = value.force()
    if literal(value):
        return space.run_known(int, [value])
    if value.symbolic and value.cls is int:
        return value
    slot = space.special(value, "__int__")
    if slot is not None:
        result = space.call(slot, [value], {}).force()
        return exact_number(space, result, int, f"__int__ returned non-int (type {result.type_name(space)})")
    if space.special(value, "__index__") is not None:
        return _exact(space, space.index(value).force())
    trunc = space.special(value, "__trunc__") if INT_TRUNCATES else None
    if trunc is not None:
        space.warn(DeprecationWarning, "The delegation of int() to __trunc__ is deprecated.")
        return _of_trunc(space, space.call(trunc, [value], {}).force())
    if value.isa(_TEXTS) or has_buffer(value.cls):
        return hooked(space, int, [value])
    words = "int() argument must be a string, a bytes-like object or a real number, not"
    raise space.error(TypeError, f"{words} '{value.type_name(space)}'")


def _of_trunc(space: Space, result: Value) -> Value:
    """`int()` of what `__trunc__` gave."""
    if not result.isa(int) and space.special(result, "__index__") is None:
        raise space.error(TypeError, f"__trunc__ returned non-Integral (type {result.type_name(space)})")
    return _exact(space, space.index(result).force())


def _exact(space: Space, result: Value) -> Value:
    return result if result.cls is int else Constant(int.__int__(known_host(space, result, "int")))


@builtin(bool)
def bool_(space: Space, value: Value | None = None, /) -> Value:
    return TRUE if value is not None and space.truth(value) else FALSE


@builtin(bool.__new__)
def bool_new(space: Space, cls: Value, value: Value | None = None, /) -> Value:
    return bool_(space, value)


def _assumed_bool(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`if bool(x):`, where nobody knows what `x` is: the branch may decide."""
    decided = space.trace.assumed(args[0]) if len(args) == 1 else None
    return None if decided is None else bool_value(decided)


LAST_RESORTS[bool] = _assumed_bool
