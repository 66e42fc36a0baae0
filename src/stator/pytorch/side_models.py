"""Models of what stands beside torch's tensors and modules: scripts, random generators."""

from __future__ import annotations

from stator.pytorch.modules import scripted
from stator.pytorch.state import generators, random_state

__all__ = ["install"]

_PARTS = (random_state, generators, scripted)


def install() -> None:
    """Register them all."""
    for part in _PARTS:
        part.install()
