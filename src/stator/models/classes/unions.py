"""`int | str` and `list[int]`: what they compare and unite with."""

from __future__ import annotations

import types

from stator.host.version_facts import TYPE_PARAMETERS, UNIONS_TAKE_ANYTHING
from stator.space.host_types import Host
from stator.space.operands import hooked
from stator.space.protocol import NOT_IMPLEMENTED, bad_call, register
from stator.space.space import Space
from stator.space.value import Value

_UNITED: tuple[type, ...] = (type, types.GenericAlias, types.UnionType, type(None))
if TYPE_PARAMETERS:
    import typing

    _UNITED += (typing.TypeAliasType,)  # type: ignore[attr-defined]


def _with(host: Host, others: tuple[type, ...]) -> None:
    """The slot leaves an operand of another type than these to that type's own."""

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if kwargs or len(args) != 2 or not args[0].isa(host.__objclass__):
            return bad_call(space, host, args, kwargs)
        if not args[1].isa(others):
            return NOT_IMPLEMENTED
        return hooked(space, host, args)

    register(host, model)


for _cls in (type, types.GenericAlias, types.UnionType):
    _others = (object,) if UNIONS_TAKE_ANYTHING and _cls is types.UnionType else _UNITED
    _with(_cls.__or__, _others)
    _with(_cls.__ror__, _others)
for _cls in (types.GenericAlias, types.UnionType):
    _with(_cls.__eq__, (_cls,))
    _with(_cls.__ne__, (_cls,))
