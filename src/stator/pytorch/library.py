"""Models of what torch has above tensors and modules: autograd functions, checkpoints, optimizers, subclasses …"""

from __future__ import annotations

import sys
from importlib import import_module

import torch

from stator.pytorch import asserting, single_steps
from stator.pytorch.tensors.subclass import let_modes_override
from stator.space.rare import announce

__all__ = ["install"]

#: file → what it is about, if not for which it is not imported (see `stator.space.rare`)
_RARE = {
    "distributed.new_tensors": "torch.distributed.tensor.DTensor",
    "distributed.parallel_losses": "torch.distributed.tensor.parallel.loss",
    "distributed.placements": "torch.distributed.tensor.placement_types",
    "modules.fx_graphs": "torch._C._NodeIter torch._C._fx_map_arg torch._C._fx_map_aggregate",
}

#: package → its files that register models, each in its `install()`
_PARTS = {
    "functions": ("autograd_function", "instances"),
    "autograd": ("checkpoint", "engine", "forward_mode", "handles", "hooks"),
    "composed": ("masked", "nested", "quantized", "sparse"),
    "distributed": ("awaited", "calls", "collectives", "functional", "groups", "meshes", "messages", "options", "work"),
    "fake": ("data_readers",),
    "higher_order": ("branches", "functorch", "higher_order", "triton_kernels", "vmap"),
    "modules": ("module_hooks", "moving_averages", "naming", "optim", "recurrent", "scripted"),
    "ranks": ("listener",),
    "sequences": ("calls",),
    "objects": ("storages",),
    "state": ("annotations", "profiling", "random_state", "generators", "saved_hooks"),
    "subclasses": ("construction", "examination", "new_wrapper", "own_functions"),
    "tensors": ("byte_conditions", "checks", "outcomes", "subclass"),
    "shapes": ("functions", "ordinary", "padding"),
}


_COMMUNICATING = ("distributed", "ranks")


def install() -> None:
    """Register them all."""
    announce("stator.pytorch", _RARE)
    asserting.install()
    single_steps.install()
    for package, parts in _PARTS.items():
        for part in parts if package not in _COMMUNICATING or torch.distributed.is_available() else ():
            _install(package, part)
    if "numpy" in sys.modules:  # torch has imported it, if it is there: else its models cannot be imported
        for part in ("arrays", "conversions", "generators", "layout", "vectorized"):
            _install("numpy", part)
    let_modes_override()


def _install(package: str, part: str) -> None:
    import_module(f"stator.pytorch.{package}.{part}").install()
