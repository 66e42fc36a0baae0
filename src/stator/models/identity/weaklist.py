"""`__weakref__`: the list of the weak references to an object, as the first of them."""

from __future__ import annotations

from typing import Any

from stator import errors
from stator.space.identity.reachability import is_alive
from stator.space.interfaces import Trace
from stator.space.protocol import NONE
from stator.space.space import Space
from stator.space.value import Unsupported, Value

__all__ = ["PlainRefs", "first_ref"]


class PlainRefs:
    """The references and the proxies without callback made in a trace, by the ids of their referents."""

    def __init__(self, trace: Trace) -> None:
        self.refs: dict[int, Any] = {}
        self.proxies: dict[int, Any] = {}


def first_ref(space: Space, referent: Value) -> Value:
    """`__weakref__` of an object made by the trace: its plain reference stands first."""
    if space.trace.root.unresumable is None:  # the trace has made no reference to a new object
        return NONE
    plain = space.trace.extension(PlainRefs).refs.get(id(referent))
    if plain is None or plain.referent is not referent or not is_alive(space, plain):
        raise Unsupported(errors.LifetimeObserved("the list of weak references to a new object"))
    return plain  # type: ignore[no-any-return]
