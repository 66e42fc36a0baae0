"""`compiled_module.forward`: the module, compiled, with its hooks, as a call of the compiled module runs it.

Torch's own code is given the plain method: `Module._call_impl` calls it in between the hooks, and other tracers look at
its code. So are other tracers that run the program. That of the compiled module's class is the module's.
"""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING

import torch

from stator._core import Compiled
from stator.pytorch import internals

if TYPE_CHECKING:
    from stator.pytorch.types import Host, Nested

__all__ = ["CompiledForward", "assign", "compiled_forward", "install", "is_torchs", "own", "plain_forward", "put"]


def own(compiled: Host, slot: str) -> Host:
    """One of the variables that are the compiled module's own, whatever its module's class makes of attributes."""
    return _variable(type(compiled), slot).__get__(compiled)


def put(compiled: Host, slot: str, item: Nested) -> None:
    """Set one of them."""
    _variable(type(compiled), slot).__set__(compiled, item)


def _variable(cls: type, slot: str) -> Host:
    """Where the class of a compiled module has one of them: itself, or its first base. Other tracers trace this."""
    held = cls.__dict__
    return held[slot] if slot in held else cls.__mro__[1].__dict__[slot]


def assign(compiled: Host, forward: object) -> None:
    """Have a call of the compiled module call this, and compile that (None: the module). The module stays as it is."""
    module = own(compiled, "_stator_module")
    if forward is module:
        forward = None
    put(compiled, "_stator_assigned", forward)
    put(compiled, "_stator_call", module if forward is None else Compiled(forward, module.region))


def _unassign(compiled: Host) -> None:
    assign(compiled, None)


class CompiledForward(property):
    """`forward` in the class of compiled modules; a property, as Dynamo understands how one is read.

    Args:
        cls: the class of the modules.
    """

    def __init__(self, cls: type) -> None:
        super().__init__(plain_forward, assign, _unassign)
        self.cls: Host = cls

    def __get__(self, instance: Host, owner: type | None = None) -> Host:
        if instance is None:
            return self.cls.forward
        if is_torchs(sys._getframe(1).f_globals) or internals.is_fx_tracing():
            return plain_forward(instance)
        return compiled_forward(instance)


def compiled_forward(compiled: Host) -> object:
    """The `forward` of a compiled module, as programs find it."""
    assigned = own(compiled, "_stator_assigned")
    return own(compiled, "_stator_module") if assigned is None else assigned


def plain_forward(compiled: Host) -> object:
    """What it would be if this were no compiled module."""
    assigned = own(compiled, "_stator_assigned")
    found = compiled.__dict__.get("forward") if assigned is None else assigned
    return super(type(compiled), compiled).forward if found is None else found


def is_torchs(names: dict[str, object]) -> bool:
    """Whether a frame with these globals is of torch's own code."""
    return str(names.get("__name__", "")).startswith("torch.")


class _Signature:
    """`__signature__` of what is `compiled.forward`: that of the method. That of a function is found without it."""

    def __get__(self, instance: Host, owner: type) -> object:
        module = None if instance is None else instance.__wrapped__
        if not isinstance(module, torch.nn.Module):
            raise AttributeError("__signature__", name="__signature__", obj=instance)
        return inspect.signature(module.forward)


def install() -> None:
    """Have inspect find the signature."""
    Compiled.__signature__ = _Signature()  # type: ignore[attr-defined]
