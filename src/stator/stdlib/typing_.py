"""Forms of `typing`; unpacked aliases; names of tracebacks.

`typing.Generic`, in C from 3.12 on, calls the Python functions it was made of before.
"""

from __future__ import annotations

import sys
import types
import typing
from typing import TYPE_CHECKING, Any

from stator.guards.source import ConstSource
from stator.objects.instance import InstanceValue
from stator.objects.iterator import IteratorValue, advanced, iterator_type, reduction
from stator.objects.protocol import bad_call, builtin, models, register
from stator.objects.value import Constant, NotKnown
from stator.stdlib.support import known_host

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.objects.value import Value
    from stator.residual.writer import Writer


@models(typing._Final)
class FormValue(InstanceValue):
    """An existing form: its classes are final and never change an instance, so that one is known by its identity."""

    __slots__ = ()

    def as_host(self, space: Space) -> Any:
        changed = self._attrs is not None and any(self._attrs.table.plan())
        if self.source is None or self.class_set or self.slots or changed:
            raise NotKnown(self)
        if type(self.source) is not ConstSource:
            space.guard_identity(self)
        return self.host


_ITER: Any = iter


@iterator_type(type(_ITER(list[int])))
class AliasIterator(IteratorValue):
    """`iter(list[int])`, which gives `*list[int]` and ends."""

    __slots__ = ("alias", "ended")

    def __init__(self, alias: types.GenericAlias) -> None:
        super().__init__(type(iter(alias)))
        self.alias = alias
        self.ended = False

    def produce(self, space: Space) -> Value | None:
        if self.ended:
            return None
        space.touch(self)
        self.ended = True
        return Constant(next(iter(self.alias)))

    def reduced(self, space: Space) -> Value:
        return reduction(space, _ITER, [space.new_tuple([]) if self.ended else Constant(self.alias)])

    def rebuilt(self, writer: Writer) -> str:
        return advanced(writer, f"iter({writer.const(self.alias)})", int(self.ended))


@builtin(vars(types.GenericAlias)["__iter__"])
def alias_iter(space: Space, alias: Value, /) -> Value:
    host = known_host(space, alias, "types.GenericAlias.__iter__")
    if not isinstance(host, types.GenericAlias):
        return bad_call(space, vars(types.GenericAlias)["__iter__"], [alias], {})
    return AliasIterator(host)


@builtin(types.TracebackType.__dir__)
def traceback_dir(space: Space, traceback: Value, /) -> Value:
    """`tb_dir`: the same of all."""
    if traceback.force().cls is not types.TracebackType:
        return bad_call(space, types.TracebackType.__dir__, [traceback], {})
    return space.new_list([Constant(name) for name in _TRACEBACK])


_TRACEBACK = ("tb_frame", "tb_next", "tb_lasti", "tb_lineno")


def _forward(name: str, function: Any) -> None:
    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return space.call(space.existing(function), args, kwargs)

    register(typing.Generic.__dict__[name], model)


if sys.version_info >= (3, 12):
    _forward("__class_getitem__", typing._generic_class_getitem)  # type: ignore[attr-defined]
    _forward("__init_subclass__", typing._generic_init_subclass)  # type: ignore[attr-defined]
