"""The options of collectives (`AllreduceOptions` …): objects of C++ that torch.distributed makes for each call.

While tracing they are made and changed for real; the program sees nothing of them but what it has written there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator import errors
from stator.guards.callable_names import class_name, function_of
from stator.guards.raw import class_dict
from stator.pytorch import internals
from stator.pytorch.distributed import recipes
from stator.space.protocol import MODELS, NONE, Handler, register
from stator.space.value import Constant, NotKnown, ObjectValue, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = ["OptionsValue", "install"]

_CLASSES = (
    *("AllToAllOptions", "AllgatherOptions", "AllreduceCoalescedOptions", "AllreduceOptions", "BroadcastOptions"),
    "ReduceScatterOptions",
)
#: reductions that functional operators take by their names
_REDUCTIONS = frozenset({"sum", "avg", "product", "min", "max", "band", "bor", "bxor"})


class OptionsValue(ObjectValue):
    """Options that the trace has made: `made` is what they are."""

    __slots__ = ("made",)

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        self.made: Host = cls()

    def default(self, name: str) -> bool:
        """Whether an option is what it is if nobody sets it."""
        return bool(getattr(self.made, name) == getattr(self.cls(), name))


def _make(cls: type) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if args or kwargs:
            raise Unsupported(errors.UnsupportedCCall(class_name(cls)))
        return OptionsValue(cls)

    return handler


def _read(name: str) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        options = args[0].force()
        return space.fresh(getattr(options.made, name)) if isinstance(options, OptionsValue) else None

    return handler


def _write(name: str) -> Handler:
    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        options, value = args[0].force(), space.known(args[1].force())
        if not isinstance(options, OptionsValue) or value is NotKnown:
            return None
        space.mark_mutated(options)
        setattr(options.made, name, value)
        return NONE

    return handler


def _reduction(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    options = args[0].force()
    assert isinstance(options, OptionsValue)
    name = options.made.reduceOp.op.name.lower()
    if name not in _REDUCTIONS:
        space.call(space.existing(recipes.leave), [Constant(f"the reduction {name} has a factor")], {})
    return Constant(name)


def install() -> None:
    """Register the models."""
    for name in _CLASSES:
        cls: Host = getattr(internals.c10d, name)
        MODELS[cls] = OptionsValue
        register(cls, _make(cls))
        for field, member in class_dict(cls).items():
            if isinstance(member, property):
                register(function_of(member), _read(field))
                register(function_of(member.fset), _write(field))
    register(recipes.reduction, _reduction)
