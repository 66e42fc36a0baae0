"""Generic aliases, `list[int]`: calls and attributes are those of the class; their iterators, `*list[int]`."""

from __future__ import annotations

import types
from typing import Any

from stator.models.iterators.iterator import IteratorValue, advanced, iterator_type, reduction
from stator.space.attributes import attribute_name
from stator.space.interfaces import Writer
from stator.space.operands import known_host
from stator.space.protocol import bad_call, builtin
from stator.space.space import Space
from stator.space.value import Constant, Raised, Value

_ITER: Any = iter
_ALIAS_ITERATOR = type(_ITER(list[int]))


@iterator_type(_ALIAS_ITERATOR)
class AliasIterator(IteratorValue):
    """`iter(list[int])`, which gives `*list[int]` and ends."""

    __slots__ = ("alias", "ended")

    def __init__(self, alias: types.GenericAlias) -> None:
        super().__init__(_ALIAS_ITERATOR)
        self.alias = alias
        self.ended = False

    def produce(self, space: Space) -> Value | None:
        if self.ended:
            return None
        space.mark_mutated(self)
        self.ended = True
        return Constant(next(iter(self.alias)))

    def reduced(self, space: Space) -> Value:
        return reduction(space, _ITER, [space.new_tuple([]) if self.ended else Constant(self.alias)])

    def rebuilt(self, writer: Writer) -> str:
        return advanced(writer, f"iter({writer.const(self.alias)})", int(self.ended))


@builtin(vars(types.GenericAlias)["__call__"])
def alias_call(space: Space, alias: Value, /, *args: Value, **kwargs: Value) -> Value:
    """`ga_call`: the object is told which alias it is of, if it can be."""
    made = space.call(_origin(space, alias), list(args), kwargs)
    try:
        space.setattr(made, "__orig_class__", alias)
    except Raised as e:
        if not e.matches((AttributeError, TypeError)):
            raise
    return made


@builtin(vars(types.GenericAlias)["__getattribute__"])
def alias_getattribute(space: Space, alias: Value, name: Value, /) -> Value:
    """`ga_getattro`: what has no double underscores is an attribute of the class."""
    text = attribute_name(space, name)
    if text.startswith("__"):
        return space.run_known(vars(types.GenericAlias)["__getattribute__"], [alias.force(), name.force()])
    return space.getattr(_origin(space, alias), text)


def _origin(space: Space, alias: Value) -> Value:
    host = known_host(space, alias, "types.GenericAlias.__call__")
    return space.existing(vars(types.GenericAlias)["__origin__"].__get__(host))


@builtin(vars(types.GenericAlias)["__iter__"])
def alias_iter(space: Space, alias: Value, /) -> Value:
    host = known_host(space, alias, "types.GenericAlias.__iter__")
    if not isinstance(host, types.GenericAlias):
        return bad_call(space, vars(types.GenericAlias)["__iter__"], [alias], {})
    return AliasIterator(host)
