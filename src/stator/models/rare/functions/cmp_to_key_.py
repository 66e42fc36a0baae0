"""`functools.cmp_to_key`: keys that compare as a function says."""

from __future__ import annotations

import functools

from stator.guards.source import Source
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import refuse_object
from stator.space.protocol import NONE, bad_call, builtin, models
from stator.space.space import Space
from stator.space.value import Constant, ObjectValue, Value

_KEY = type(functools.cmp_to_key(lambda a, b: 0))


@models(_KEY)
class KeyValue(ObjectValue):
    """What `cmp_to_key` returns, and what that returns for an object."""

    __slots__ = ("compare", "obj")
    FIELDS = {"obj": lambda self, space: self.obj or NONE}

    def __init__(self, compare: Value, obj: Value | None) -> None:
        super().__init__(_KEY)
        self.compare = compare
        self.obj = obj

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        raise refuse_object("a key of functools.cmp_to_key that was made outside the compiled function")

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        values = [*args, *kwargs.values()]
        if len(values) != 1 or (kwargs and "obj" not in kwargs):
            return bad_call(space, functools.cmp_to_key(max), args, kwargs)
        return KeyValue(self.compare, values[0])

    def rebuilt(self, writer: Writer) -> str:
        key = f"{writer.const(functools.cmp_to_key)}({writer.expr(self.compare)})"
        return str(writer.assign("key", key if self.obj is None else f"{key}({writer.expr(self.obj)})"))

    def tp_richcompare(self, space: Space, symbol: str, other: Value) -> Value:
        """Compare what the function says about both objects with 0."""
        if not isinstance(other, KeyValue):
            raise space.error(TypeError, "other argument must be K instance")
        if self.obj is None or other.obj is None:
            raise space.error(AttributeError, "object")
        return space.compare(symbol, space.call(self.compare, [self.obj, other.obj], {}), Constant(0))


@builtin(functools.cmp_to_key)
def cmp_to_key(space: Space, mycmp: Value | None = None) -> Value:
    return bad_call(space, functools.cmp_to_key, [], {}) if mycmp is None else KeyValue(mycmp, None)
