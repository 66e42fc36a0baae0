"""`bytes`: construction from values; its methods run for real."""

from __future__ import annotations

from stator._core import has_buffer
from stator.models.classes.payload import PayloadValue
from stator.space.operands import hooked, known_host, literal, refuse_use
from stator.space.protocol import builtin
from stator.space.space import Space
from stator.space.value import Constant, Value


@builtin(bytes.__new__)
def bytes_new(
    space: Space, cls: Value, source: Value | None = None, encoding: Value | None = None, errors: Value | None = None
) -> Value:
    owner = known_host(space, cls, "bytes.__new__")
    named = {name: v for name, v in (("encoding", encoding), ("errors", errors)) if v is not None}
    if source is None or named:
        result = hooked(space, bytes, [] if source is None else [source], named)
    else:
        result = to_bytes(space, source)
    return PayloadValue.of_class(space, owner, bytes, result)


def to_bytes(space: Space, value: Value) -> Value:
    """`bytes(value)`: `__bytes__`, a count, a buffer, or an iterable of numbers."""
    value = value.force()
    if literal(value):
        return space.run_known(bytes, [value])
    slot = space.special(value, "__bytes__")
    if slot is not None:
        result = space.call(slot, [value], {}).force()
        if not result.isa(bytes):
            raise space.error(TypeError, f"__bytes__ returned non-bytes (type {result.type_name(space)})")
        return result
    if value.isa(str):
        raise space.error(TypeError, "string argument without an encoding")
    if space.special(value, "__index__") is not None:
        return space.run_known(bytes, [Constant(space.int_(value))])
    if value.isa((bytes, bytearray, memoryview)):
        return hooked(space, bytes, [value])
    if has_buffer(value.cls):
        raise refuse_use("bytes.__new__", "of a buffer")
    if not space.is_iterable(value):
        raise space.error(TypeError, f"cannot convert '{value.type_name(space)}' object to bytes")
    numbers = [space.int_(item) for item in space.iterate(value)]
    return space.run_known(lambda: bytes(numbers), [])
