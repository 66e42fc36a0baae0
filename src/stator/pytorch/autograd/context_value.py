"""The `ctx` that a `torch.autograd.Function` is given."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from stator import errors
from stator.models.classes.instance import InstanceValue
from stator.space.protocol import FALSE, NONE, TRUE
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stator.space.interfaces import Writer
    from stator.space.space import Space

__all__ = ["ContextValue", "is_none"]

_FIELDS = frozenset({"to_save", "dirty_tensors", "non_differentiable", "materialize_grads", "saved_for_forward"})


class ContextValue(InstanceValue):
    """The `ctx` of one application: attributes as the program sets them, and what C code keeps for it."""

    __slots__ = ("fields", "needs")

    def __init__(self, cls: type, needs: list[bool]) -> None:
        super().__init__(cls)
        self.needs = needs
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

    @contextmanager
    def saved_for_forward(self) -> Iterator[None]:
        """The tensors that it shows as saved are those that `jvp` is to have."""
        before = self.fields.get("to_save", NONE)
        self.fields["to_save"] = self.fields.get("saved_for_forward", NONE)
        try:
            yield
        finally:
            self.fields["to_save"] = before

    def reconstruct(self, writer: Writer) -> str:
        raise Unsupported(errors.NotReconstructible("the context of an autograd.Function"))


def is_none(value: Value) -> bool:
    """Whether it is None."""
    value = value.force()
    return value.constant and value.host is None
