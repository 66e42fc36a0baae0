"""Reading tensors' metadata for guards, in Python for every kind of tensor and in C++ for the common ones."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch

from ..guards.tensor import TensorFacts, TensorSpec, packed

__all__ = ["read_facts", "tensor_spec"]

_Base: Any = torch._C.TensorBase
_shape, _dtype, _device, _layout, _requires_grad = (
    vars(_Base)[name].__get__ for name in ("shape", "dtype", "device", "layout", "requires_grad")
)
_stride, _is_coalesced, _sparse_dim, _dense_dim, _qscheme = (
    getattr(_Base, name) for name in ("stride", "is_coalesced", "sparse_dim", "dense_dim", "qscheme")
)
_keys: Callable[[Any], Any] = torch._C._dispatch_keys
_level: Callable[[Any], int] = torch._C._functorch.maybe_get_level


def read_facts(tensor: Any) -> TensorFacts:
    """All that a guard may ask of a tensor, without its ``__torch_function__``."""
    with torch._C.DisableTorchFunctionSubclass():
        layout = _layout(tensor)
        strides = tuple(_stride(tensor)) if layout is torch.strided and not tensor.is_nested else None
        return TensorFacts(
            _dtype(tensor),
            _device(tensor),
            layout,
            _requires_grad(tensor),
            _keys(tensor).raw_repr(),
            tuple(_shape(tensor)) if not tensor.is_nested else (),
            strides,
            _extra(tensor, layout),
        )


def _extra(tensor: Any, layout: Any) -> tuple[object, ...]:
    extra: tuple[object, ...] = ()
    if layout is torch.sparse_coo:
        extra += ("sparse", _sparse_dim(tensor), _dense_dim(tensor), _is_coalesced(tensor))
    if tensor.is_nested and layout is torch.strided:
        extra += ("nested", *map(tuple, tensor._nested_tensor_size().tolist()))
    if tensor.is_quantized:
        extra += ("qscheme", _qscheme(tensor))
    level = _level(tensor)
    return extra if level < 0 else (*extra, "functorch level", level)


def tensor_spec(tensor: Any, dynamic_dims: Collection[int] = (), check_strides: bool = True) -> TensorSpec:
    """What a guard expects of a tensor like this one.

    The sizes of ``dynamic_dims`` are left open; a stride that is the product of an inner dimension's open size and
    stride is expected to stay so.
    """
    facts = read_facts(tensor)
    sizes = tuple(None if dim in dynamic_dims else size for dim, size in enumerate(facts.sizes))
    strides = _expected_strides(facts, frozenset(dynamic_dims)) if check_strides and facts.strides is not None else None
    return TensorSpec(
        type(tensor),
        facts.dtype,
        facts.device,
        facts.layout,
        facts.requires_grad,
        facts.keys,
        sizes,
        strides,
        facts.extra,
        read_facts,
    )


def _expected_strides(facts: TensorFacts, dynamic: frozenset[int]) -> tuple[int, ...]:
    sizes, strides = facts.sizes, facts.strides
    assert strides is not None
    expected = list(strides)
    open_dims: set[int] = set(dynamic)  # dims whose size * stride is not a fixed number
    for dim in sorted(range(len(sizes)), key=lambda d: (strides[d], -d)):
        inner = next((d for d in open_dims if d != dim and sizes[d] * strides[d] == strides[dim]), None)
        if inner is not None and not _depends(expected, inner, dim):
            expected[dim] = packed(inner)
            open_dims.add(dim)
    return tuple(expected)


def _depends(expected: list[int], dim: int, on: int) -> bool:
    """Is the expectation of ``dim``'s stride made from ``on``'s?"""
    while expected[dim] < 0:
        dim = -1 - expected[dim]
        if dim == on:
            return True
    return False
