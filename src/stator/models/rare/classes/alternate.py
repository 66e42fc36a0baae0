"""Class methods that make an object of the builtin type, and by a call of the subclass an instance of that."""

from __future__ import annotations

from stator.space.host_types import Host
from stator.space.operands import hooked
from stator.space.protocol import register
from stator.space.space import Space
from stator.space.value import Value


def _constructor(native: type, name: str) -> None:
    host: Host = vars(native)[name]

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if not args:
            return space.unmodelled(host, args, kwargs)
        cls = args[0].force()
        made = hooked(space, getattr(native, name), args[1:], kwargs)
        return made if cls.as_host(space) is native else space.call(cls, [made], {})

    register(host, model)


_constructor(int, "from_bytes")
_constructor(float, "fromhex")
_constructor(bytes, "fromhex")
_constructor(bytearray, "fromhex")
