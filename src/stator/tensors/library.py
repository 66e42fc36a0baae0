"""Models of what torch has above tensors and modules: autograd functions, checkpoints, optimizers, subclasses …"""

from __future__ import annotations

import sys

from stator.tensors import (
    autograd_function,
    checkpoint,
    checks,
    data_readers,
    engine,
    forward_mode,
    functorch,
    higher_order,
    hooks,
    optim,
    random_state,
    recurrent,
    subclass,
    vmap,
)

__all__ = ["install"]

_PARTS = (
    *(autograd_function, checkpoint, checks, data_readers, engine, forward_mode),
    *(functorch, higher_order, hooks, optim, random_state, recurrent, subclass, vmap),
)


def install() -> None:
    """Register them all."""
    for part in _PARTS:
        part.install()
    if "numpy" in sys.modules:  # torch has imported it, if it is there
        from stator.tensors import arrays

        arrays.install()
