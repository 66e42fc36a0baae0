"""Models of what torch has above tensors and modules: autograd functions, checkpoints, optimizers, subclasses …"""

from __future__ import annotations

from stator.tensors import (
    autograd_function,
    checkpoint,
    checks,
    data_readers,
    engine,
    functorch,
    hooks,
    optim,
    profiling,
    random_state,
    subclass,
)

__all__ = ["install"]

_PARTS = (
    *(autograd_function, checkpoint, checks, data_readers, engine),
    *(functorch, hooks, optim, profiling, random_state, subclass),
)


def install() -> None:
    """Register them all."""
    for part in _PARTS:
        part.install()
