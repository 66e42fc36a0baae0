"""`torch.compiler.reset()` and `torch._dynamo.reset()`: what Stator has compiled is forgotten with the rest.

Torch resets every backend that it knows. What clears Stator's caches is put among them, again at each compile: the
list is emptied by the reset, after which nothing is cached before the next compile.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from stator.host.waiting import when_loaded

__all__ = ["follow", "follow_from_import"]

_TORCHS = "torch._dynamo.eval_frame"


class _Clearing:
    """Stands among the backends that torch resets."""

    def __init__(self, forget_all: Callable[[], None]) -> None:
        self.reset = forget_all


def follow(forget_all: Callable[[], None]) -> None:
    """See to it that torch's next reset calls the function."""
    known: Any = getattr(sys.modules.get(_TORCHS), "cached_backends", None)
    if isinstance(known, dict) and not any(isinstance(each, _Clearing) for each in known.values()):
        clearing = _Clearing(forget_all)
        known[id(clearing)] = clearing


def follow_from_import(forget_all: Callable[[], None]) -> None:
    """Do so as soon as torch's compiler is imported."""

    def loaded(module: ModuleType) -> None:
        follow(forget_all)

    when_loaded(_TORCHS, loaded)
