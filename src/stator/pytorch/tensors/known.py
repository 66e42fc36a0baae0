"""Tensors whose contents are known while tracing: made of constants and of modules' scalars, and not written since.

Their contents are computed for real when somebody asks, and the scalars are guarded then. So `torch.tensor([1, 2])`
gives its list, and a size that was divided by `torch.div` breaks nothing.

A branch, which would break the graph, may ask for more: for the integers that an object holds as an attribute, such as
the time steps of a scheduler (`if scheduler.timesteps[0] > 500`). Where they have been seen to change, it breaks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.guards.base import Guard
from stator.guards.guard import Predicate
from stator.guards.interned import Interned
from stator.guards.source import AttrSource
from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.graph.inputs import is_member
from stator.pytorch.graph.memory import lies_apart
from stator.pytorch.shapes import dynamism
from stator.pytorch.tensors.recipes import Search, known_elements
from stator.pytorch.tensors.tensor import TensorValue, tensors_among

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.shapes.symbols import SymValue
    from stator.space.value import Value

__all__ = ["contents", "is_scalar_member", "is_unwritten", "is_written_alone", "learn_sizes"]

#: operations, and elements of a tensor, that are worth computing while tracing
_MOST = 256, 1 << 20
#: elements of an existing tensor that are worth a guard
_MOST_GUARDED = 1024


def contents(recorder: Recorder, value: Value, branch: bool = False) -> torch.Tensor | None:
    """A real tensor equal to the traced one, or None where its contents are not known.

    Args:
        branch: whether the program branches on them.
    """
    if not isinstance(value, TensorValue):
        return None
    search = Search(recorder, recorder.state.key, _Members(recorder, branch), _MOST)
    recipe = search.recipe(value)
    found: torch.Tensor | None = None if recipe is None else search.now(recipe)
    if found is not None:
        member: Any
        for member in search.given:
            recorder.trace.guard(_same_contents(member))
    return found


def learn_sizes(recorder: Recorder, made: list[Value]) -> None:
    """The sizes of what an operation makes may depend on contents (`mask.nonzero()`): those of known ones are known."""
    for value in tensors_among(made):
        if value.operation is None or not value.operation.bindings:
            continue
        real = contents(recorder, value)
        for size, known in zip(value.shape, () if real is None else real.shape, strict=real is not None):
            if hint_of(size) is None:
                internals.assume(size == known)


class _Members:
    """Whether the contents of an existing tensor are known: of those that have not been seen to change, the one
    element of a module's buffer, and what objects hold, if the program branches on it."""

    def __init__(self, recorder: Recorder, branch: bool) -> None:
        self.recorder = recorder
        self.branch = branch

    def __call__(self, value: TensorValue | SymValue) -> bool:
        if not isinstance(value, TensorValue) or value.root in self.recorder.effects.rewritten:
            return False
        if known_elements(value) > _MOST_GUARDED:
            return False
        is_setting = self.branch and _is_setting(value) and is_unwritten(self.recorder, value)
        if not is_setting and not is_scalar_member(self.recorder, value):
            return False
        return dynamism.contents_stay(self.recorder.trace, value)


def is_scalar_member(recorder: Recorder, value: TensorValue) -> bool:
    """Whether it is a scalar that a module holds, which nobody has written to."""
    return value.shape == () and is_member(value) and is_unwritten(recorder, value)


def is_unwritten(recorder: Recorder, value: TensorValue) -> bool:
    """Whether an existing tensor still is the tensor it was, and nothing in its memory has been written; guarded."""
    return value.root not in recorder.effects.rewritten and is_written_alone(recorder, value)


def is_written_alone(recorder: Recorder, value: TensorValue) -> bool:
    """The same but for writes to the tensor itself, or to views that the program has made of it."""
    effects = recorder.effects
    if value in recorder.tracked.rebound or effects.acts:
        return False
    others = [root for root in effects.rewritten if root.host is not None and root is not value]
    return not others or lies_apart(recorder, value, others)


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
