"""A hook that the graph registers on a tensor it makes, as the parts of a trace know of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch.fake.failure import describe_callable
from stator.space.signals import Restart

if TYPE_CHECKING:
    from stator.pytorch.traced import TracedTensor

__all__ = ["TracedHook"]


class TracedHook:
    """A hook that the graph registers: on which tensor, and at which instruction."""

    def __init__(self, tensor: TracedTensor, step: int) -> None:
        self.tensor = tensor
        self.step = step

    def refused(self, why: str) -> Restart:
        """The graph is to end before the hook is registered."""
        return Restart(self.step, errors.AutogradCall(describe_callable(torch.Tensor.register_hook), why))
