"""Which memory tensors lie in, and whether they lie upon each other.

Most operators refuse to write where they also read, or write again, in part. Fake tensors let them, so the graph breaks
there and the operation itself decides. The rules are those of `at::get_overlap_status` and `at::has_internal_overlap`
(ATen/MemoryOverlap.cpp): what is not dense is not looked into.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.tensors.classes import inner_tensors, is_wrapper

__all__ = ["is_dense", "meet", "overlaps", "storage_of", "storages_of"]


def storage_of(tensor: torch.Tensor) -> int:
    """Which storage a tensor has, as a number; tensors without one count as their own."""
    try:
        return int(internals.storage_address(tensor.untyped_storage()))
    except (NotImplementedError, RuntimeError):
        return id(tensor)


def storages_of(tensor: torch.Tensor) -> set[int]:
    """Its own storage, and those of the tensors in a wrapper."""
    found = {storage_of(tensor)}
    if is_wrapper(type(tensor)):
        for inner in inner_tensors(tensor).values():
            found |= storages_of(inner)
    return found


def overlaps(written: torch.Tensor, operands: Sequence[object]) -> bool:
    """Whether a (fake) tensor that is written lies upon itself, or partly upon one of the other operands."""
    place = _Place.of(written)
    if place is None:
        return False
    storage = storage_of(written)
    others = [t for t in operands if isinstance(t, torch.Tensor) and t is not written and storage_of(t) == storage]
    return place.repeats or any(place.overlaps_partly(_Place.of(other)) for other in others)


def meet(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether two (fake) tensors in one storage may have elements in common."""
    places = _Place.of(one), _Place.of(other)
    return None in places or (places[0].begin < places[1].end and places[1].begin < places[0].end)  # type: ignore[union-attr]


def is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements of a (fake) tensor fill a stretch of memory, each at its own address."""
    place = _Place.of(tensor)
    return place is None or place.dense


class _Place:
    """Where in its memory a tensor lies; what is asked of symbols, the ShapeEnv guards."""

    __slots__ = ("begin", "shape", "size", "stride")

    def __init__(self, tensor: torch.Tensor) -> None:
        self.shape = tensor.shape
        self.stride = tensor.stride()
        self.size = tensor.dtype.itemsize
        self.begin = tensor.storage_offset() * self.size

    @classmethod
    def of(cls, tensor: torch.Tensor) -> _Place | None:
        """The place of a tensor of known layout that has elements at all."""
        if tensor.layout is not torch.strided or tensor.is_nested:
            return None
        numbers = (*tensor.shape, *tensor.stride(), tensor.storage_offset())
        if any(hint_of(n) is None for n in numbers) or any(n == 0 for n in tensor.shape):
            return None
        return cls(tensor)

    @property
    def end(self) -> int:
        """The address behind its last element."""
        return self.begin + self.size * (1 + sum((n - 1) * s for n, s in zip(self.shape, self.stride, strict=True)))

    @property
    def dense(self) -> bool:
        """Whether the elements fill a stretch of memory, each at its own address, in some order of the dimensions."""
        expected = 1
        for step, size in sorted((s, n) for n, s in zip(self.shape, self.stride, strict=True) if n != 1):
            if step != expected:
                return False
            expected *= size
        return True

    @property
    def repeats(self) -> bool:
        """Whether several of its elements are one."""
        return any(s == 0 and n > 1 for n, s in zip(self.shape, self.stride, strict=True))

    def overlaps_partly(self, other: _Place | None) -> bool:
        """Whether it shares some elements with another in the same memory, but not each with its own."""
        if other is None or not (self.dense and other.dense):
            return False
        if (self.begin, self.end) == (other.begin, other.end):
            return self.stride != other.stride
        return self.begin < other.end and other.begin < self.end
