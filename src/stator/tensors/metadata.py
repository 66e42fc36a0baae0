"""What the trace knows of a tensor without its data: an interned description, cheap to compare and to hash."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["TensorMeta", "forget_all", "meta_of"]

_Base: Any = torch._C.TensorBase
_BITS = (torch.Tensor.is_conj, torch.Tensor.is_neg, torch.Tensor.is_inference)
_interned: dict[tuple[Any, ...], TensorMeta] = {}


class TensorMeta:
    """Metadata of a dense tensor with static sizes. One object per description: compare with `is`."""

    __slots__ = ("bits", "device", "dtype", "is_leaf", "is_view", "offset", "requires_grad", "shape", "stride")

    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    dtype: Any
    device: Any
    requires_grad: bool
    is_leaf: bool
    is_view: bool
    #: conjugate, negative, inference
    bits: tuple[bool, bool, bool]

    def parts(self, *, views: bool = True) -> tuple[Any, ...]:
        """Everything that makes up the description; without `views`, except for being a view."""
        return tuple(getattr(self, name) for name in _ORDER if views or name != "is_view")

    def __repr__(self) -> str:
        grad = ", requires_grad" if self.requires_grad else ""
        return f"<{self.dtype} {self.shape} {self.device}{grad}>"


_ORDER = ("shape", "stride", "offset", "dtype", "device", "requires_grad", "is_leaf", "is_view", "bits")


def meta_of(tensor: Any) -> TensorMeta | None:
    """The description of a real or fake tensor, or None for a kind that has no short one.

    Sparse, nested, quantised and symbolic tensors, those inside a functorch transform and dual tensors have none.
    """
    if not _describable(tensor):
        return None
    key = (
        tuple(_Base.size(tensor)),
        _Base.stride(tensor),
        _Base.storage_offset(tensor),
        tensor.dtype,
        tensor.device,
        tensor.requires_grad,
        tensor.is_leaf,
        tensor._is_view(),
        tuple([bit(tensor) for bit in _BITS]),
    )
    found = _interned.get(key)
    if found is None:
        found = TensorMeta()
        for name, part in zip(_ORDER, key, strict=True):
            setattr(found, name, part)
        _interned[key] = found
    return found


def _describable(tensor: Any) -> bool:
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized or tensor.is_mkldnn:
        return False
    return not tensor._has_symbolic_sizes_strides and torch._C._functorch.maybe_get_level(tensor) < 0


def forget_all() -> None:
    """Drop the table of descriptions (only together with what is keyed by them)."""
    _interned.clear()
