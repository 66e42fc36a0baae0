"""The `ctx` that a `torch.autograd.Function` is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.models.classes.instance import InstanceValue
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import FALSE, NONE, TRUE
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["ContextValue", "is_none"]

_FIELDS = frozenset({"to_save", "dirty_tensors", "non_differentiable", "materialize_grads", "saved_for_forward"})


class ContextValue(InstanceValue):
    """The `ctx` of one application: attributes as the program sets them, and what C code keeps for it."""

    __slots__ = ("fields", "needs")

    def __init__(self, cls: type, inputs: list[Value]) -> None:
        super().__init__(cls)
        self.needs = [_wants_grad(value) for value in inputs]
        self.fields: dict[str, Value] = {}

    def get_field(self, space: Space, name: str) -> Value | None:
        if name == "needs_input_grad":
            return space.new_tuple([TRUE if wanted else FALSE for wanted in self.needs])
        if name in ("saved_tensors", "saved_variables"):
            return space.new_tuple(self.listed(space, "to_save"))
        return self.fields.get(name, NONE if name in _FIELDS else None)

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        if name not in _FIELDS:
            return False
        self.fields[name] = NONE if value is None or is_none(value) else value.force()
        return True

    def listed(self, space: Space, name: str) -> list[Value]:
        """A field that holds a tuple, as a list; empty where it was not set."""
        value = self.fields.get(name, NONE)
        return [] if value is NONE else [item.force() for item in space.unpack(value)]

    def reconstruct(self, writer: Writer) -> str:
        raise Unsupported(errors.NotReconstructible("the context of an autograd.Function"))


def is_none(value: Value) -> bool:
    """Whether it is None."""
    value = value.force()
    return value.constant and value.host is None


def _wants_grad(value: Value) -> bool:
    return isinstance(value, TensorValue) and torch.is_grad_enabled() and value.requires_grad
