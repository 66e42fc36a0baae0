"""`tensor[index]` with tensors that hold one number each: a number to look up, or an element for each example.

    mask = create_block_mask(lambda b, h, i, j: document[i] == document[j], …)

runs the function by vmap for all positions at once, in a mode of torch's that makes `document[i]` the element for each
(TransformGetItemToIndex). The functions that enter it are left to Python as a whole where anything breaks, so that the
mode is never one of a graph break.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch.tensors.lowering import Call
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Nested
    from stator.space.interfaces import Trace

__all__ = ["ScalarIndexing"]


class ScalarIndexing:
    """Whether indices stand for those of many examples."""

    def __init__(self, trace: Trace) -> None:
        #: what the nodes of `tensor[index]` call, for each of the operators that are at work; the last is the innermost
        self.targets: list[Function] = []

    @contextmanager
    def by_operator(self) -> Iterator[None]:
        """They do meanwhile. The graph holds `tensor[index]`, as the operator runs it in torch's mode."""
        self.targets.append(operator.getitem)
        try:
            yield
        finally:
            self.targets.pop()

    def call(self, tensor: Value, parts: list[Value]) -> Call | None:
        """The call to record for `tensor[parts]`; None for an ordinary one."""
        if not self.targets or not isinstance(tensor, TensorValue):
            return None
        if any(part.cls is list for part in parts):
            raise Unsupported(errors.UnsupportedTensorOperation("Tensor.__getitem__", "its index is a list"))
        if not all(isinstance(part, TensorValue) or part.cls is int for part in parts):
            return None
        return Call(elements, "call_function", self.targets[-1])


def elements(tensor: torch.Tensor, index: Nested) -> torch.Tensor:
    """The elements of a tensor at an index for each example; never a view."""
    parts = index if isinstance(index, tuple) else (index,)
    return torch.ops.aten.index(tensor, [torch.as_tensor(part, device=tensor.device) for part in parts])
