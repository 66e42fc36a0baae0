"""Forms of `typing`.

`typing.Generic`, in C from 3.12 on, calls the Python functions it was made of before.
"""

from __future__ import annotations

import typing

from stator import errors
from stator.host.version_facts import TYPE_PARAMETER_DEFAULTS, TYPE_PARAMETERS
from stator.models.classes.instance import InstanceValue
from stator.space.host_types import Host
from stator.space.protocol import models, register
from stator.space.space import Space
from stator.space.value import NotKnown, Unsupported, Value


@models(typing._Final)
class FormValue(InstanceValue):
    """An existing form: its classes are final and never change an instance, so that one is known by its identity."""

    __slots__ = ()

    def as_host(self, space: Space) -> Host:
        changed = self._attrs is not None and any(self._attrs.table.plan())
        if self.source is None or self.class_set or self.slots or changed:
            raise NotKnown(self)
        space.guard_identity(self)
        return self.host


def _forward(name: str, function: Host) -> None:
    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return space.call(space.existing(function), args, kwargs)

    register(typing.Generic.__dict__[name], model)


def _evaluated(cls: type, name: str) -> None:
    """An attribute that the program's own code computes when it is asked for first."""

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Unsupported(errors.UnsupportedAttribute(cls.__name__, name))

    register(vars(cls)[name], model)


if TYPE_PARAMETERS:
    _evaluated(typing.TypeAliasType, "__value__")  # type: ignore[attr-defined]
    for _name in ("__bound__", "__constraints__"):
        _evaluated(typing.TypeVar, _name)
    _forward("__class_getitem__", typing._generic_class_getitem)  # type: ignore[attr-defined]
    _forward("__init_subclass__", typing._generic_init_subclass)  # type: ignore[attr-defined]

if TYPE_PARAMETER_DEFAULTS:
    for _kind in (typing.TypeVar, typing.ParamSpec, typing.TypeVarTuple):
        _evaluated(_kind, "__default__")
