"""Models of what torch has above tensors and modules: autograd functions, checkpoints, optimizers, subclasses …"""

from __future__ import annotations

import sys

from stator.pytorch.autograd import autograd_function, checkpoint, engine, forward_mode, hooks
from stator.pytorch.fake import data_readers
from stator.pytorch.higher_order import functorch, higher_order, vmap
from stator.pytorch.modules import optim, recurrent
from stator.pytorch.shapes import functions
from stator.pytorch.state import random_state
from stator.pytorch.tensors import checks, subclass

__all__ = ["install"]

_PARTS = (
    *(autograd_function, checkpoint, checks, data_readers, engine, forward_mode),
    *(functions, functorch, higher_order, hooks, optim, random_state, recurrent, subclass, vmap),
)


def install() -> None:
    """Register them all."""
    for part in _PARTS:
        part.install()
    if "numpy" in sys.modules:  # torch has imported it, if it is there: else its models cannot be imported
        from stator.pytorch.numpy import arrays

        arrays.install()
