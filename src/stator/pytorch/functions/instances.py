"""Instances of a `torch.autograd.Function`: objects to call `apply` on, with the attributes that the program sets.

    f = Scaled(2)
    y = f.apply(x) * f.scale

The same type is the context that autograd hands to `forward`; but the application makes that anew, and nothing that an
instance holds reaches it. What C code would keep in an instance has no model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.models.classes.instance import InstanceValue
from stator.models.iterators.iterator import own_class
from stator.pytorch import internals
from stator.space.protocol import bad_call, register

if TYPE_CHECKING:
    from stator.space.interfaces import Writer
    from stator.space.space import Space
    from stator.space.value import Value


class FunctionInstance(InstanceValue):
    """One that the program has made."""

    __slots__ = ()

    def shell(self, writer: Writer) -> str:
        return f"{writer.const(internals.FunctionBase)}.__new__({writer.const(self.cls)})"


def _new(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`_FunctionBase.__new__(cls, …)`, which looks at nothing but the class."""
    cls = space.known(args[0].force()) if args else None
    if not isinstance(cls, type) or not issubclass(cls, internals.FunctionBase):
        return bad_call(space, internals.FunctionBase.__new__, args, kwargs)
    return FunctionInstance(own_class(space, args[0].force()))


def install() -> None:
    """Register the model."""
    register(internals.FunctionBase.__new__, _new)
