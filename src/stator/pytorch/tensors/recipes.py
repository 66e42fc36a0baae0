"""How a value is computed from tensors: calls of operations in their order, to be made again before each run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from stator.pytorch import internals
from stator.pytorch.tensors.lowering import fill

if TYPE_CHECKING:
    from stator.pytorch.types import Args, Function, Kwargs

    #: a call: the function, its arguments with operands in them, and where each operand is found
    Step: TypeAlias = tuple[Function, Args, Kwargs, list["Place"]]

__all__ = ["Place", "Recipe"]


class Place:
    """Where a value is found: among the tensors a recipe begins with, or in a result; and the text it is shown as."""

    def __init__(self, index: int, text: str, path: tuple[Any, ...] = (), *, given: bool = False) -> None:
        self.index = index
        self.text = text
        self.path = path
        self.given = given

    def find(self, tensors: tuple[torch.Tensor, ...], results: list[Any]) -> Any:
        """The value."""
        found = tensors[self.index] if self.given else results[self.index]
        for step in self.path:
            found = found[step]
        return found


class Recipe:
    """How a condition is computed from existing tensors."""

    def __init__(self, steps: list[Step], outcome: Place) -> None:
        self.steps = steps
        self.outcome = outcome

    def truth(self, tensors: tuple[torch.Tensor, ...]) -> bool:
        """The truth of the condition, whatever modes are on."""
        if internals.len_dispatch_stack():
            with internals.disable_current_modes():
                return self.truth(tensors)
        results: list[Any] = []
        with internals.DisableTorchFunction():
            for function, args, kwargs, places in self.steps:
                operands = [place.find(tensors, results) for place in places]
                results.append(function(*fill(args, operands), **fill(kwargs, operands)))
            return bool(self.outcome.find(tensors, results))
