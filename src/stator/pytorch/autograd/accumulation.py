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
from stator.pytorch.fake.storage import is_dense, meet, storages_of
from stator.pytorch.tensors.classes import is_plain_class, is_traceable, is_wrapper
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.tensor import TensorValue, tensors_among

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Fake
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["Accumulation"]


class Accumulation:
    """The accumulation of gradients that one run of the engine has given.

    Args:
        operands: what the engine was given, which the program holds.
        create_graph: whether it records what is done to gradients.
    """

    def __init__(self, space: Space, operands: list[Value], create_graph: bool) -> None:
        self.space = space
        self.operands = operands
        self.create_graph = create_graph
        self._in_memory = _by_storage(space.trace.recorder)

    def add(self, leaf: TensorValue, new: Value, *, held: bool = False) -> bool:
        """Accumulate a gradient in a leaf; False, with nothing recorded, where it is not known what the engine does.

        Args:
            held: the program may hold the gradient too.
        """
        old = self.space.getattr(leaf, "grad").force()
        if is_none(new):
            return True
        if not isinstance(new, TensorValue) or not all(map(_is_known, (leaf, new))):
            return False
        if is_none(old):
            held |= any(new is operand for operand in self.operands)
            may_own = not self.create_graph and not held and _lies_like(new.fake, leaf.fake)
            others = self.others(new)
            if may_own and (_overlaps(new.fake, others) or (others and is_wrapper(new.cls))):
                return False
            self.put(leaf, new if may_own and not others else self.copied(leaf, new))
            return True
        if not _is_known(old):
            return False
        made = record_method(self.space, "add" if self.create_graph else "add_", old, new)
        if self.create_graph:
            self.put(leaf, made)
        return True

    def others(self, gradient: TensorValue) -> list[Fake]:
        """The other tensors in the memory of a gradient, as fake ones."""
        found = [v for storage in storages_of(gradient.fake) for v in self._in_memory.get(storage, ())]
        return [v._fake for v in found if v is not gradient]

    def copied(self, leaf: TensorValue, new: TensorValue) -> TensorValue:
        """A copy of a gradient that lies in memory as the leaf does."""
        space = self.space
        if not is_dense(leaf.fake):
            made: TensorValue = record_method(space, "clone", new, memory_format=torch.contiguous_format)
            return made
        size, stride = record_method(space, "size", leaf), record_method(space, "stride", leaf)
        made = record_method(space, "copy_", record_method(space, "new_empty_strided", new, size, stride), new)
        return made

    def retain(self, tensor: TensorValue, new: Value) -> bool:
        """Accumulate a gradient in a tensor that is no leaf and retains it: always as a new tensor."""
        if is_none(new):
            return True
        if not _is_known(new):
            return False
        old = tensor.fields.get("grad")
        if old is None:
            self.put(tensor, record_method(self.space, "clone", new, memory_format=torch.contiguous_format))
        else:
            self.put(tensor, record_method(self.space, "add", old, new))
        return True

    def put(self, leaf: TensorValue, gradient: TensorValue) -> None:
        """`leaf.grad = gradient`."""
        if leaf.source is not None:
            self.space.mark_mutated(leaf)
        leaf.fields["grad"] = gradient


def _is_known(value: Value) -> bool:
    """Whether it is a plain tensor, or a wrapper that lies in memory like one."""
    if not isinstance(value, TensorValue) or (is_traceable(value.cls) and not value.fake.is_nested):
        return isinstance(value, TensorValue)
    return value.meta is not None and is_plain_class(value.cls)


def _lies_like(gradient: Fake, leaf: Fake) -> bool:
    """Whether a gradient has the strides that the engine wants for that of a leaf."""
    if not is_dense(leaf):
        return bool(gradient.is_contiguous())
    strides = zip(gradient.shape, gradient.stride(), leaf.stride(), strict=True)
    return all(same_numbers(n, 1) or same_numbers(have, want) for n, have, want in strides)


def _by_storage(recorder: Recorder) -> dict[int, list[TensorValue]]:
    """The tensors of a trace that have fake tensors, by the memory of these."""
    found: dict[int, list[TensorValue]] = {}
    for value in tensors_among((*recorder.tracked.existing, *recorder.tracked.made)):
        if value._fake is not None:
            for storage in storages_of(value._fake):
                found.setdefault(storage, []).append(value)
    return found


def _overlaps(gradient: Fake, others: list[Fake]) -> bool:
    """Whether a gradient is a view of another tensor, or lies in part beneath it: in eager it stays so in `.grad`."""
    return any(other is not gradient and meet(gradient, other) for other in others)
