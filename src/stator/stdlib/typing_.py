"""`typing.Generic`, written in C from 3.12 on: it calls the Python functions it was made of before."""

from __future__ import annotations

import sys
import typing
from typing import TYPE_CHECKING, Any

from stator.objects.protocol import register

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.objects.value import Value


def _forward(name: str, function: Any) -> None:
    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return space.call(space.existing(function), args, kwargs)

    register(typing.Generic.__dict__[name], model)


if sys.version_info >= (3, 12):
    _forward("__class_getitem__", typing._generic_class_getitem)  # type: ignore[attr-defined]
    _forward("__init_subclass__", typing._generic_init_subclass)  # type: ignore[attr-defined]
