"""`int` and `bool`: construction from values; their methods run for real."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.objects.payload import PayloadValue
from stator.objects.protocol import FALSE, TRUE, builtin
from stator.objects.value import Constant, Value
from stator.stdlib.support import has_buffer, hooked, known_host, literal, refuse

if TYPE_CHECKING:
    from stator.objects.space import Space

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
    if owner is int:
        return result
    return PayloadValue.made(owner, int, known_host(space, result, "int.__new__"))


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
        if not issubclass(result.cls, int):
            raise space.error(TypeError, f"__int__ returned non-int (type {result.type_name})")
        return _exact(space, result)
    if space.special(value, "__index__") is not None:
        return _exact(space, space.index(value).force())
    if issubclass(value.cls, _TEXTS):
        return hooked(space, int, [value])
    if space.special(value, "__trunc__") is not None:
        raise refuse(f"int of a {value.cls.__name__}, which has only __trunc__")
    if has_buffer(value):
        raise refuse(f"int of a {value.cls.__name__}")
    words = "int() argument must be a string, a bytes-like object or a real number, not"
    raise space.error(TypeError, f"{words} '{value.type_name}'")


def _exact(space: Space, result: Value) -> Value:
    if result.cls is not int:
        raise refuse("int of an object whose __int__ gives a subclass of int")  # deprecated: it warns
    return result


@builtin(bool.__new__)
def bool_new(space: Space, cls: Value, value: Value | None = None, /) -> Value:
    return TRUE if value is not None and space.truth(value) else FALSE
