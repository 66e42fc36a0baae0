"""Tensors whose contents are known while tracing: made of constants and of modules' scalars, and not written since.

Their contents are computed for real when somebody asks, and the scalars are guarded then. So `torch.tensor([1, 2])`
gives its list, and a size that was divided by `torch.div` breaks nothing.

A branch, which would break the graph, may ask for more: for the integers that an object holds as an attribute, such as
the time steps of a scheduler (`if scheduler.timesteps[0] > 500`). Where they have been seen to change, it breaks.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from stator.guards.base import Guard
from stator.guards.guard import Predicate
from stator.guards.interned import Interned
from stator.guards.source import AttrSource, GlobalSource
from stator.pytorch.fake.metadata import hint_of, is_describable
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.graph.inputs import is_member
from stator.pytorch.shapes import dynamism
from stator.pytorch.state.global_state import computes_alike
from stator.pytorch.tensors.lowering import fill
from stator.pytorch.tensors.tensor import TensorValue

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation
    from stator.pytorch.types import Nested
    from stator.space.value import Value

__all__ = ["contents", "is_held", "is_small", "is_unwritten"]

#: elements of a tensor that is worth computing while tracing
_MOST = 1024
_DEPTH = 64


def contents(recorder: Recorder, value: Value, branch: bool = False) -> torch.Tensor | None:
    """A real tensor equal to the traced one, or None where its contents are not known.

    Args:
        branch: whether the program branches on them.
    """
    if not isinstance(value, TensorValue):
        return None
    search = _Search(recorder, branch)
    with torch.no_grad():
        found = search.computed(value, _DEPTH)
    if found is not None:
        for member in search.members:
            recorder.trace.guard(_same_contents(member))
    return found


class _Search:
    """Computes the contents of one tensor; `members` are the existing tensors it has read."""

    def __init__(self, recorder: Recorder, branch: bool) -> None:
        self.recorder = recorder
        self.branch = branch
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
        if not is_small(value):
            return None
        is_scalar = value.shape == () and is_member(value)
        if not is_scalar and not (self.branch and _is_setting(value) and is_unwritten(self.recorder, value)):
            return None
        if not dynamism.contents_stay(self.recorder.trace, value):
            return None
        self.members.append(value)
        return value.host.detach().clone()

    def is_simple(self, value: TensorValue, operation: Operation) -> bool:
        """Whether the operation depends on its operands alone, and is worth running."""
        if operation.key is None or operation.effectful or not computes_alike(operation.state, self.recorder.state.key):
            return False
        return is_small(value) and "empty" not in getattr(operation.function, "__name__", "empty")

    def run(self, operation: Operation, depth: int) -> torch.Tensor | None:
        """The operation's real result, or None."""
        operands: list[torch.Tensor] = []
        for operand in operation.operands:
            known = self.computed(operand, depth - 1)
            if known is None:
                return None
            operands.append(known)
        try:
            return operation.function(*fill(operation.args, operands), **fill(operation.kwargs, operands))
        except Exception:
            return None


def is_small(value: TensorValue) -> bool:
    """Whether a tensor is one whose contents are worth computing besides the graph."""
    if value.device.type != "cpu" or value.requires_grad or not (value.host is None or is_describable(value.host)):
        return False
    sizes = [hint_of(size) for size in value.shape]
    return None not in sizes and math.prod(sizes) <= _MOST


def is_held(value: TensorValue) -> bool:
    """Whether an object or a module holds an existing tensor, and not just a variable."""
    steps = () if value.source is None else value.source.chain()
    return any(isinstance(step, AttrSource | GlobalSource) for step in steps)


def is_unwritten(recorder: Recorder, value: TensorValue) -> bool:
    """Whether an existing tensor still is the tensor it was, and nothing in its memory has been written."""
    effects = recorder.effects
    hosts = [root.host for root in effects.rewritten if root.host is not None]
    is_same = value not in recorder.tracked.rebound and value.root not in effects.rewritten
    return is_same and not effects.acts and all(storage_of(host) != storage_of(value.host) for host in hosts)


def _is_setting(value: TensorValue) -> bool:
    """Whether it is a tensor of a few integers that an object holds: such a one tends to stay as it is."""
    is_integral = not (value.dtype.is_floating_point or value.dtype.is_complex)
    return is_integral and (type(value.source) is AttrSource or is_member(value))


def _same_contents(member: TensorValue) -> Guard:
    assert member.source is not None
    numbers = member.host.tolist()
    return Predicate((member.source,), _Holds(repr(numbers)), f"{member.source.expr()}.tolist() == {numbers}")


class _Holds(Interned):
    """Whether a tensor holds the numbers that make this text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __call__(self, tensor: torch.Tensor) -> bool:
        return repr(tensor.tolist()) == self.text
