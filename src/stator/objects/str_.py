"""`str`: construction from values; its methods run for real, or are modelled in `stdlib.str_`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.objects.operands import hooked, known_host
from stator.objects.payload import PayloadValue
from stator.objects.protocol import builtin
from stator.objects.repr_ import str_of
from stator.objects.value import Constant, Value

if TYPE_CHECKING:
    from stator.objects.space import Space


@builtin(str.__new__)
def str_new(
    space: Space, cls: Value, object: Value | None = None, encoding: Value | None = None, errors: Value | None = None
) -> Value:
    owner = known_host(space, cls, "str.__new__")
    decoding = {name: v for name, v in (("encoding", encoding), ("errors", errors)) if v is not None}
    if decoding:
        result = hooked(space, str, [] if object is None else [object], decoding)
    else:
        result = Constant("") if object is None else str_of(space, object)
    if owner is str:
        return result
    return PayloadValue.made(space, owner, str, str.__str__(known_host(space, result, "str.__new__")))
