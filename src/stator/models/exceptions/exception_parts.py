"""What the real exception that stands for a traced one holds, and where."""

from __future__ import annotations

import types

from stator.guards.raw import is_heap_type, members
from stator.space.host_types import Host
from stator.space.space import Space
from stator.space.value import Value

__all__ = ["Hole", "HoleSeen", "native_base", "own_fields", "value_of"]

_FIELDS = (types.MemberDescriptorType, types.GetSetDescriptorType)


class HoleSeen(Exception):
    """C code looked at the text of something only traced."""


class Hole:
    """Stands for a traced value inside a real exception."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __repr__(self) -> str:
        raise HoleSeen

    __str__ = __repr__


def native_base(cls: type) -> type[BaseException]:
    """The exception class written in C that lays out instances of `cls`."""
    return next(base for base in cls.__mro__ if not is_heap_type(base))


def own_fields(native: type[BaseException]) -> list[str]:
    """The C-level attributes of a builtin exception class beyond those of BaseException."""
    classes = [base for base in native.__mro__ if base not in (BaseException, object)]
    return [name for base in reversed(classes) for name in members(base, *_FIELDS)]


def value_of(space: Space, host: Host) -> Value:
    """The value that something found inside a real exception stands for."""
    if type(host) is Hole:
        return host.value
    if type(host) is tuple:
        return space.new_tuple([value_of(space, item) for item in host])
    return space.fresh(host)
