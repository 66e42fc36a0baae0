"""torch.ops: operators reached by name, which are callables of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.guards.source import Source
from stator.models.classes.attr_dict import AttrDict
from stator.pytorch import internals
from stator.pytorch.modules.packed_weights import with_objects
from stator.pytorch.tensors.calls import function_handler
from stator.space.protocol import HANDLERS, IMMUTABLE, MODELS, pure, register
from stator.space.signals import DoFirst
from stator.space.value import Known, Raised, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.interfaces import Trace, Writer
    from stator.space.space import Space

__all__ = ["OperatorValue", "install"]


class OperatorValue(Known):
    """`torch.ops.aten.add.Tensor`, or the packet `torch.ops.aten.add` of its overloads."""

    __slots__ = ("_attrs",)

    def __init__(self, host: Host, source: Source | None = None) -> None:
        super().__init__(host, source)
        self._attrs: Any = None

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> OperatorValue:
        self = cls(host, source)
        if not source.is_constant:
            space.guard_identity(self)
        return self

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        handler = HANDLERS.get(id(self.host))
        result = with_objects(space, self.host, args, kwargs) if handler is None else handler(space, args, kwargs)
        return function_handler(self.host)(space, args, kwargs) if result is None else result

    def attr_dict(self, space: Space) -> Any:
        if self._attrs is None:
            self._attrs = AttrDict(self, self.host)
        return self._attrs


_WHAT = "operators are looked up"


class _LookedUp:
    """Attributes that look-ups have made, which guards take for missing: no backend is called for such a trace."""

    def __init__(self, trace: Trace) -> None:
        self.known = _WHAT in trace.done_first
        trace.recorder.checks.append(self)

    def confirm(self) -> None:
        if not self.known:
            raise DoFirst(_WHAT)

    def expressions(self, writer: Writer) -> list[str]:
        return []


def _load(function: Function) -> Any:
    """`__getattr__` of torch.ops and what is in it: looks the operator up, and remembers it as an attribute."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        owner, name = [space.known(arg.force()) for arg in args]
        try:
            found = function(owner, name)
        except AttributeError as e:
            raise Raised(space.exception(e)) from None
        if name in vars(owner):
            space.trace.extension(_LookedUp)
        return space.existing(found)

    return handler


def install() -> None:
    """Register the models."""
    for cls in (torch.FunctionSchema, torch.Argument):  # `operator._schema` tells what the operator takes
        IMMUTABLE.add(cls)
        pure(*(member.fget for member in vars(cls).values() if isinstance(member, property)))
    MODELS[internals.OpOverload] = OperatorValue
    MODELS[internals.OpOverloadPacket] = OperatorValue
    for cls in (internals.OpOverloadPacket, internals.OpNamespace, internals.Ops, type(internals.VF)):
        register(cls.__getattr__, _load(cls.__getattr__))
