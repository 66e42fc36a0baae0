"""`__weakref__`: the list of the weak references to an object, as the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator import errors
from stator.models.identity.weakref_ import PlainRefs
from stator.space.identity.reachability import is_alive
from stator.space.protocol import NONE
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.space.space import Space

__all__ = ["first_ref"]


def first_ref(space: Space, referent: Value) -> Value:
    """`__weakref__` of an object made by the trace: its plain reference stands first."""
    if space.trace.root.unresumable is None:  # the trace has made no reference to a new object
        return NONE
    plain = space.trace.extension(PlainRefs).refs.get(id(referent))
    if plain is None or plain.referent is not referent or not is_alive(space, plain):
        raise Unsupported(errors.LifetimeObserved("the list of weak references to a new object"))
    return plain
