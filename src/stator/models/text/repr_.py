"""`repr`, `str` and `ascii`: `PyObject_Repr`, `PyObject_Str` and `PyObject_ASCII`."""

from __future__ import annotations

from stator.space.operands import known_host, literal
from stator.space.protocol import builtin
from stator.space.recursion import IN_REPR, nested
from stator.space.space import Space
from stator.space.value import Constant, Value

__all__ = ["ascii_of", "repr_of", "str_of"]


def repr_of(space: Space, value: Value) -> Value:
    """`repr(value)`."""
    value = value.force()
    if literal(value):
        return space.run_known(repr, [value])
    slot = space.special(value, "__repr__")
    if slot is None:
        raise space.error(TypeError, f"'{value.type_name(space)}' object is not callable")
    with nested(space, IN_REPR):
        result = space.call(slot, [value], {}).force()
    if not result.isa(str):
        raise space.error(TypeError, f"__repr__ returned non-string (type {space.class_name(result.cls)})")
    return result


def str_of(space: Space, value: Value) -> Value:
    """`str(value)`."""
    value = value.force()
    if value.cls is str:
        return value
    if literal(value):
        return space.run_known(str, [value])
    slot = space.special(value, "__str__")
    if slot is None:
        return repr_of(space, value)
    with nested(space, " while getting the str of an object"):
        result = space.call(slot, [value], {}).force()
    if not result.isa(str):
        raise space.error(TypeError, f"__str__ returned non-string (type {result.type_name(space)})")
    return result


def ascii_of(space: Space, value: Value) -> Value:
    """`ascii(value)`: its repr with all but ASCII escaped."""
    shown = repr_of(space, value)
    text = str.__str__(known_host(space, shown, "ascii"))
    return shown if text.isascii() else Constant(text.encode("ascii", "backslashreplace").decode("ascii"))


@builtin(object.__str__)
def object_str(space: Space, value: Value, /) -> Value:
    return repr_of(space, value)
