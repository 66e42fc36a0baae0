"""Models of what torch has above tensors and modules: autograd functions, checkpoints, optimizers, subclasses …"""

from __future__ import annotations

import sys
from importlib import import_module

from stator.pytorch import single_steps
from stator.pytorch.tensors.subclass import let_modes_override
from stator.space.rare import announce

__all__ = ["install"]

#: file → what it is about, if not for which it is not imported (see `stator.space.rare`)
_RARE = {"distributed.placements": "torch.distributed.tensor.placement_types"}

#: package → its files that register models, each in its `install()`
_PARTS = {
    "autograd": ("autograd_function", "checkpoint", "engine", "forward_mode", "hooks", "saved_hooks"),
    "composed": ("masked", "quantized"),
    "distributed": ("calls", "groups", "meshes", "options", "work"),
    "fake": ("data_readers",),
    "higher_order": ("functorch", "higher_order", "vmap"),
    "modules": ("module_hooks", "optim", "recurrent", "scripted"),
    "sequences": ("calls",),
    "shapes": ("functions",),
    "state": ("random_state", "generators"),
    "subclasses": ("construction", "examination", "new_wrapper"),
    "tensors": ("byte_conditions", "checks", "subclass"),
}


def install() -> None:
    """Register them all."""
    announce("stator.pytorch", _RARE)
    single_steps.install()
    for package, parts in _PARTS.items():
        for part in parts:
            _install(package, part)
    if "numpy" in sys.modules:  # torch has imported it, if it is there: else its models cannot be imported
        _install("numpy", "arrays")
        _install("numpy", "random_draws")
    let_modes_override()


def _install(package: str, part: str) -> None:
    import_module(f"stator.pytorch.{package}.{part}").install()
