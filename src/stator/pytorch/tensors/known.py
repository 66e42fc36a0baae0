"""Tensors whose contents are known while tracing: made of constants and of modules' scalars, and not written since.

Their contents are computed for real when somebody asks, and the scalars are guarded then. So `torch.tensor([1, 2])`
gives its list, and a size that was divided by `torch.div` breaks nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from stator.guards.base import Guard
from stator.guards.guard import Predicate
from stator.guards.interned import Interned
from stator.pytorch.graph.inputs import is_member
from stator.pytorch.shapes import dynamism
from stator.pytorch.tensors.lowering import fill
from stator.pytorch.tensors.tensor import TensorValue

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation
    from stator.pytorch.types import Nested, Number
    from stator.space.value import Value

__all__ = ["contents"]

#: elements of a tensor that is worth computing while tracing
_MOST = 1024
_DEPTH = 64


def contents(recorder: Recorder, value: Value) -> torch.Tensor | None:
    """A real tensor equal to the traced one, or None where its contents are not known."""
    if not isinstance(value, TensorValue):
        return None
    search = _Search(recorder)
    with torch.no_grad():
        found = search.computed(value, _DEPTH)
    if found is not None:
        for member in search.members:
            recorder.trace.guard(_same_contents(member))
    return found


class _Search:
    """Computes the contents of one tensor; `members` are the existing tensors it has read."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.members: list[TensorValue] = []
        self.done: dict[int, Nested] = {}

    def computed(self, value: Value, depth: int) -> torch.Tensor | None:
        """The real tensor, or None."""
        if not isinstance(value, TensorValue) or value.root in self.recorder.effects.rewritten or depth == 0:
            return None
        operation = value.operation
        if operation is None:
            return self.member(value)
        if not self.is_simple(value, operation):
            return None
        if id(operation) not in self.done:
            self.done[id(operation)] = self.run(operation, depth)
        result = self.done[id(operation)]
        for index in value.path if result is not None else ():
            result = result[index]
        return result

    def member(self, value: TensorValue) -> torch.Tensor | None:
        """The contents of a module's buffer of one element, if they have not been seen to change."""
        meta = value.meta
        if meta is None or meta.shape != () or meta.device.type != "cpu" or meta.requires_grad or not is_member(value):
            return None
        if not dynamism.contents_stay(self.recorder.trace, value):
            return None
        self.members.append(value)
        return value.host.detach().clone()

    def is_simple(self, value: TensorValue, operation: Operation) -> bool:
        """Whether the operation depends on its operands alone, and is worth running."""
        meta = value.meta
        if meta is None or meta.device.type != "cpu" or meta.requires_grad:
            return False
        if operation.key is None or operation.state is not self.recorder.state.key or operation.effectful:
            return False
        return math.prod(meta.shape) <= _MOST and "empty" not in getattr(operation.function, "__name__", "empty")

    def run(self, operation: Operation, depth: int) -> torch.Tensor | None:
        """The operation's real result, or None."""
        operands = [self.computed(operand, depth - 1) for operand in operation.operands]
        if any(operand is None for operand in operands):
            return None
        try:
            return operation.function(*fill(operation.args, operands), **fill(operation.kwargs, operands))
        except Exception:
            return None


def _same_contents(member: TensorValue) -> Guard:
    assert member.source is not None
    number = member.host.item()
    return Predicate((member.source,), _Holds(number), f"{member.source.expr()}.item() == {number}")


class _Holds(Interned):
    """Whether a tensor of one element holds the number."""

    def __init__(self, number: Number) -> None:
        self.number = number

    def __call__(self, tensor: torch.Tensor) -> bool:
        return bool(tensor.item() == self.number)
