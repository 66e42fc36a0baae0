"""Callables that `stator.compile` has made, met in the traced program: what they wrap is traced into."""

from __future__ import annotations

from stator._core import Compiled
from stator.models.classes.instance import InstanceValue
from stator.models.functions.method import Bindable
from stator.space.facts import attribute
from stator.space.protocol import models
from stator.space.space import Space
from stator.space.value import Value


@models(Compiled)
class CompiledValue(Bindable, InstanceValue):
    """A compiled callable: the outer compiled function absorbs it, with its own settings."""

    __slots__ = ()

    def wrapped(self, space: Space) -> Value:
        """The function that was compiled."""
        return attribute(space, self, "__wrapped__")

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        return space.call(self.wrapped(space), args, kwargs, in_tail_position)
