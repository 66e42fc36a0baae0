"""`torch.compiler.reset()` and `torch._dynamo.reset()`: what Stator has compiled is forgotten with the rest.

Torch resets every backend that it knows. What clears Stator's caches is put among them, again at each compile: the
list is emptied by the reset, after which nothing is cached before the next compile.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from stator.controls.waiting import when_loaded

__all__ = ["follow", "follow_from_import"]

_TORCHS = "torch._dynamo.eval_frame"


class _Clearing:
    """Stands among the backends that torch resets."""

    def reset(self) -> None:
        from stator.region import BUCKETS

        for bucket in list(BUCKETS):
            bucket.clear()


_CLEARING = _Clearing()


def follow() -> None:
    """See to it that torch's next reset reaches Stator."""
    known: Any = getattr(sys.modules.get(_TORCHS), "cached_backends", None)
    if isinstance(known, dict):
        known.setdefault(id(_CLEARING), _CLEARING)


def follow_from_import() -> None:
    """Do so as soon as torch's compiler is imported."""

    def loaded(module: ModuleType) -> None:
        follow()

    when_loaded(_TORCHS, loaded)
