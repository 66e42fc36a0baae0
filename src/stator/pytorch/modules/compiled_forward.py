"""`compiled_module.forward`: the compiled module, with its hooks, as a call of the stand-in runs it.

Torch's own code is given the plain method: `Module._call_impl` calls it in between the hooks, and other tracers look at
its code. So are other tracers that run the program. That of the stand-in's class is the module's.
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


def own(stand_in: Host, slot: str) -> Host:
    """One of the variables that are the stand-in's own, whatever its module's class makes of attributes."""
    return type(stand_in).__dict__[slot].__get__(stand_in)


def put(stand_in: Host, slot: str, item: Nested) -> None:
    """Set one of them."""
    type(stand_in).__dict__[slot].__set__(stand_in, item)


def assign(stand_in: Host, forward: object) -> None:
    """Have a call of the stand-in call this, and compile that (None: the module). The module stays as it is."""
    compiled = own(stand_in, "_stator_module")
    if forward is compiled:
        forward = None
    put(stand_in, "_stator_assigned", forward)
    put(stand_in, "_stator_call", compiled if forward is None else Compiled(forward, compiled.region))


def _unassign(stand_in: Host) -> None:
    assign(stand_in, None)


class CompiledForward(property):
    """`forward` in the class of stand-ins; a property, as Dynamo understands how one is read.

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


def compiled_forward(stand_in: Host) -> object:
    """The `forward` of a stand-in, as programs find it."""
    assigned = own(stand_in, "_stator_assigned")
    return own(stand_in, "_stator_module") if assigned is None else assigned


def plain_forward(stand_in: Host) -> object:
    """What it would be if this were no stand-in."""
    assigned = own(stand_in, "_stator_assigned")
    found = stand_in.__dict__.get("forward") if assigned is None else assigned
    return super(type(stand_in), stand_in).forward if found is None else found


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
