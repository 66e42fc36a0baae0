"""Gradients that a graph has computed, accumulated in leaves as the engine does it.

A leaf without a gradient gets the one that comes, if nobody else holds it and it lies in memory as the leaf does, else
a copy that does. To a gradient that is there the new one is added in place. With `create_graph`, which records what is
done to gradients, the leaf gets a new tensor in any case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch.autograd.context_value import is_none
from stator.pytorch.fake.metadata import same_numbers
from stator.pytorch.fake.storage import is_dense, meet, storage_of
from stator.pytorch.tensors.classes import is_plain_class
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.tensor import TensorValue, tensors_among

if TYPE_CHECKING:
    from stator.pytorch.types import Fake
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["Accumulation"]


class Accumulation:
    """The accumulation of gradients in leaves, by one run of the engine."""

    def __init__(self, space: Space, leaves: list[TensorValue], create_graph: bool) -> None:
        self.space = space
        self.leaves = leaves
        self.create_graph = create_graph
        self.before = [space.getattr(leaf, "grad").force() for leaf in leaves]

    def can_follow(self, gradients: list[Value]) -> bool:
        """Whether all that is needed is known of leaves, of what they have accumulated, and of new gradients."""
        present = [value for value in (*self.before, *gradients) if not is_none(value)]
        return all(map(_is_known, (*self.leaves, *present)))

    def record(self, gradients: list[Value], operands: list[Value]) -> bool:
        """Record it for gradients that are tensors, or None; False if one would share its memory with other tensors.

        Args:
            operands: what the engine was given. The program holds it.
        """
        self.operands = operands
        for leaf, old, new in zip(self.leaves, self.before, gradients, strict=True):
            if is_none(new):
                continue
            assert isinstance(new, TensorValue)
            if is_none(old):
                if self.may_own(leaf, new) and _overlaps_others(new):
                    return False
                self.put(leaf, self.own(leaf, new))
            elif self.create_graph:
                self.put(leaf, record_method(self.space, "add", old, new))
            else:
                record_method(self.space, "add_", old, new)
        return True

    def may_own(self, leaf: TensorValue, new: TensorValue) -> bool:
        """Whether the engine would make the very gradient that of the leaf, if nobody else held it."""
        held = any(new is operand for operand in self.operands)
        return not self.create_graph and not held and _lies_like(new.fake, leaf.fake)

    def own(self, leaf: TensorValue, new: TensorValue) -> TensorValue:
        """The gradient of a leaf that had none."""
        if self.may_own(leaf, new) and not _others_in_memory(new):
            return new
        space = self.space
        if not is_dense(leaf.fake):
            made: TensorValue = record_method(space, "clone", new, memory_format=torch.contiguous_format)
            return made
        size, stride = record_method(space, "size", leaf), record_method(space, "stride", leaf)
        made = record_method(space, "copy_", record_method(space, "new_empty_strided", new, size, stride), new)
        return made

    def put(self, leaf: TensorValue, gradient: TensorValue) -> None:
        """`leaf.grad = gradient`."""
        if leaf.source is not None:
            self.space.mark_mutated(leaf)
        leaf.fields["grad"] = gradient


def _is_known(value: Value) -> bool:
    return isinstance(value, TensorValue) and value.meta is not None and is_plain_class(value.cls)


def _lies_like(gradient: Fake, leaf: Fake) -> bool:
    """Whether a gradient has the strides that the engine wants for that of a leaf."""
    if not is_dense(leaf):
        return bool(gradient.is_contiguous())
    strides = zip(gradient.shape, gradient.stride(), leaf.stride(), strict=True)
    return all(same_numbers(n, 1) or same_numbers(have, want) for n, have, want in strides)


def _others_in_memory(gradient: TensorValue) -> list[Fake]:
    """The other tensors of the trace in the memory of a gradient."""
    tracked, storage = gradient.recorder.tracked, storage_of(gradient.fake)
    others = [v._fake for v in tensors_among((*tracked.existing, *tracked.made)) if v is not gradient]
    return [fake for fake in others if fake is not None and storage_of(fake) == storage]


def _overlaps_others(gradient: TensorValue) -> bool:
    """Whether a gradient is a view of another tensor, or lies in part beneath it: in eager it stays so in `.grad`."""
    others = _others_in_memory(gradient)
    return any(other is not gradient.fake and meet(gradient.fake, other) for other in others)
