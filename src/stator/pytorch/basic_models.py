"""Models of tensors, modules, sizes and torch's global state, on which those of its library rest (see `library`)."""

from __future__ import annotations

from stator.pytorch.modules import compiled_forward, lazy, nn_module, optimized_module
from stator.pytorch.objects import copies, reassigned
from stator.pytorch.shapes import sizes
from stator.pytorch.state import contexts, function_modes, other_tracers, policy
from stator.pytorch.tensors import constants, operators, shown, specials

__all__ = ["install"]

_PARTS = (
    *(constants, contexts, function_modes, reassigned, shown, specials, sizes, operators, nn_module, policy),
    *(other_tracers, optimized_module, compiled_forward, copies, lazy),
)


def install() -> None:
    """Register them all."""
    for part in _PARTS:
        part.install()
