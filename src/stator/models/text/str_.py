"""`str`: construction from values; its methods run for real, or are modelled in `deferred_text.py`."""

from __future__ import annotations

from stator.models.classes.payload import PayloadValue
from stator.models.text.repr_ import str_of
from stator.space.operands import hooked, known_host
from stator.space.protocol import builtin
from stator.space.space import Space
from stator.space.value import Constant, Value


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
    return PayloadValue.of_class(space, owner, str, result)
