"""`float` and `complex`: construction from values; their methods run for real."""

from __future__ import annotations

from stator._core import has_buffer
from stator.models.classes.payload import PayloadValue
from stator.space.operands import exact_number, hooked, known_host, literal
from stator.space.protocol import bad_call, builtin, register
from stator.space.space import Space
from stator.space.value import Constant, Value

_TEXTS = (str, bytes, bytearray)


def _hash(base: type) -> None:
    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        value = args[0].force() if args else None
        if isinstance(value, PayloadValue):
            space.check_nan(value, value.payload)
        return None

    register(base.__hash__, model)


_hash(float)
_hash(complex)


@builtin(float.__new__)
def float_new(space: Space, cls: Value, number: Value | None = None, /, **kwargs: Value) -> Value:
    owner = known_host(space, cls, "float.__new__")
    if kwargs and space.host_lookup(owner, "__init__") is float.__init__:
        raise space.error(TypeError, "float() takes no keyword arguments")
    result = Constant(0.0) if number is None else to_float(space, number)
    return PayloadValue.of_class(space, owner, float, result)


def to_float(space: Space, value: Value) -> Value:
    """`PyNumber_Float`: an exact float of whatever has `__float__` or `__index__`, or of text."""
    value = value.force()
    if literal(value):
        return space.run_known(float, [value])
    if value.symbolic and value.cls is float:
        return value
    if space.special(value, "__float__") is not None:
        return as_double(space, value)
    if value.isa(_TEXTS) or has_buffer(value.cls):
        return hooked(space, float, [value])
    if space.special(value, "__index__") is None:
        words = "float() argument must be a string or a real number, not"
        raise space.error(TypeError, f"{words} '{value.type_name(space)}'")
    return as_double(space, value)


def as_double(space: Space, value: Value) -> Value:
    """`PyFloat_AsDouble`: what C functions that take a float make of their argument."""
    value = value.force()
    if literal(value) and value.cls is not str:
        return space.run_known(_double, [value])
    if value.symbolic and value.cls is float:
        return value
    slot = space.special(value, "__float__")
    if slot is None:
        if space.special(value, "__index__") is None:
            raise space.error(TypeError, f"must be real number, not {value.type_name(space)}")
        return hooked(space, int.__float__, [space.index(value)])
    result = space.call(slot, [value], {}).force()
    words = f"{value.type_name(space)}.__float__ returned non-float (type {result.type_name(space)})"
    return exact_number(space, result, float, words)


def _double(number: float) -> float:
    if isinstance(number, (int, float)):
        return float(number)
    raise TypeError(f"must be real number, not {type(number).__name__}")


@builtin(complex.__new__)
def complex_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
    owner = known_host(space, cls, "complex.__new__")
    alone = len(args) + len(kwargs) == 1
    given = [_complex_part(space, arg.force(), not place, alone) for place, arg in enumerate(args)]
    named = {name: _complex_part(space, arg.force(), name == "real", alone) for name, arg in kwargs.items()}
    if any(part.symbolic for part in (*given, *named.values())):
        return hooked(space, complex, [*given, *named.values()])
    return PayloadValue.of_class(space, owner, complex, space.run_known(complex, given, named))


def _complex_part(space: Space, value: Value, first: bool, alone: bool) -> Value:
    """An argument of `complex()`, the first or the other, as something CPython itself can take."""
    if literal(value) or value.symbolic:
        return value
    slot = space.special(value, "__complex__") if first else None
    if slot is not None:
        result = space.call(slot, [value], {}).force()
        words = f"__complex__ returned non-complex (type {result.type_name(space)})"
        return exact_number(space, result, complex, words)
    if space.special(value, "__float__") is not None or space.special(value, "__index__") is not None:
        return as_double(space, value)
    if value.isa(complex):  # the second: its number is taken, and no method asked
        return Constant(complex(complex.__pos__(known_host(space, value, "complex"))))
    if value.isa(str):
        return Constant(str.__str__(known_host(space, value, "complex")))
    zero = Constant(0)
    return bad_call(space, complex, [value] if alone else [value, zero] if first else [zero, value], {})
