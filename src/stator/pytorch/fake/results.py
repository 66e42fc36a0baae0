"""What some operators make, by rules of our own: torch's rules take them apart in Python, 0.5 to 6 ms for a call.

A rule takes the operator's own parameters: dense operands of one device, whose sizes are numbers (`direct.py` sees to
that). It gives the sizes and the type of each result; all of these are contiguous. Where it does not know, or the
operands do not fit together, it gives None, and torch says what comes of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import torch

from stator.pytorch import internals

__all__ = ["RULES", "Results", "corrected"]

Sizes: TypeAlias = Sequence[int]
#: sizes and type of each result
Results: TypeAlias = list[tuple[Sizes, torch.dtype]]
Rule: TypeAlias = Callable[..., Results | None]

_aten: Any = torch.ops.aten
_INDICES = (torch.int64, torch.int32)


def _are_usual(*operands: torch.Tensor | None) -> bool:
    """Whether they hold floating-point numbers of one type; None stands for an operand that is left out."""
    given = [operand for operand in operands if operand is not None]
    first = given[0].dtype
    return first.is_floating_point and all(each.dtype is first and each.numel() for each in given)


def _is_contiguous(tensor: torch.Tensor) -> bool:
    """Whether it has elements, and lies in memory as a new tensor would, in dimensions of one element too."""
    expected = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride()), strict=True):
        if stride != expected or not size:
            return False
        expected *= size
    return True


def _have(sizes: Sizes, *operands: torch.Tensor | None) -> bool:
    return all(operand is None or tuple(operand.shape) == tuple(sizes) for operand in operands)


def _addmm(
    bias: torch.Tensor, one: torch.Tensor, other: torch.Tensor, *, beta: float = 1, alpha: float = 1
) -> Results | None:
    if not _are_usual(bias, one, other) or one.dim() != 2 or other.dim() != 2 or one.shape[1] != other.shape[0]:
        return None
    sizes = (one.shape[0], other.shape[1])
    if bias.dim() > 2 or any(n not in (1, m) for n, m in zip(reversed(bias.shape), reversed(sizes), strict=False)):
        return None
    return [(sizes, one.dtype)]


def _layer_norm(
    data: torch.Tensor, normalized: Sizes, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float
) -> Results | None:
    kept = data.dim() - len(normalized)
    if not _are_usual(data, weight, bias) or not _is_exact(data) or not _is_contiguous(data) or kept < 0:
        return None
    if not normalized or tuple(data.shape[kept:]) != tuple(normalized) or not _have(normalized, weight, bias):
        return None
    statistics = (*data.shape[:kept], *[1] * len(normalized))
    return [(data.shape, data.dtype), (statistics, data.dtype), (statistics, data.dtype)]


def _group_norm(
    data: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    rows: int,
    channels: int,
    rest: int,
    groups: int,
    eps: float,
) -> Results | None:
    if not _are_usual(data, weight, bias) or not _is_exact(data) or not _is_contiguous(data) or data.dim() < 2:
        return None
    if tuple(data.shape[:2]) != (rows, channels) or math.prod(data.shape[2:]) != rest:
        return None
    if groups <= 0 or channels % groups or not _have((channels,), weight, bias):
        return None
    statistics = (rows, groups)
    return [(data.shape, data.dtype), (statistics, data.dtype), (statistics, data.dtype)]


def _batch_norm(
    data: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor | None,
    variance: torch.Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Results | None:
    if not _are_usual(data, weight, bias, mean, variance) or not _is_exact(data) or not _is_contiguous(data):
        return None
    if data.dim() < 2 or not _have(data.shape[1:2], weight, bias, mean, variance):
        return None
    if (mean is None) is not (variance is None) or (mean is None and not training):
        return None
    statistics = data.shape[1:2] if training else (0,)
    return [(data.shape, data.dtype), (statistics, data.dtype), (statistics, data.dtype)]


def _is_exact(data: torch.Tensor) -> bool:
    """Whether statistics of it are of its own type: those of shorter types differ from device to device."""
    return data.dtype in (torch.float32, torch.float64)


def corrected(operator: object, made: Any, args: Sequence[object]) -> Any:
    """What an operator makes, where torch's rules get its types wrong: the statistics of norms on a CPU.

    Those of numbers in 16 bits are of the type of the parameters, if there are any: `LayerNorm` under autocast. torch's
    rules give them the data's type, or 32 bits to all; the kernels of the backward pass refuse what these did not make.
    """
    if operator not in _NORMS:
        return made
    data, *parameters = [arg for arg in args if isinstance(arg, torch.Tensor)]
    if data.device.type != "cpu" or data.dtype not in _SHORT:
        return made
    kind = parameters[0].dtype if parameters else data.dtype
    return made[0], *[each.to(kind) for each in made[1:]]


_SHORT = (torch.bfloat16, torch.float16)
_NORMS = frozenset({
    _aten.native_layer_norm.default,
    _aten.native_group_norm.default,
    _aten.native_batch_norm.default,
    internals.batch_norm_op,
    internals.batch_norm_alone_op,
})  # fmt: skip


def _convolution(
    data: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
) -> Results | None:
    if not _are_usual(data, weight, bias) or not _is_contiguous(data) or not _is_contiguous(weight):
        return None
    if transposed or not 3 <= data.dim() <= 5 or data.dim() != weight.dim() or groups <= 0:
        return None
    if weight.shape[0] % groups or data.shape[1] != weight.shape[1] * groups or not _have(weight.shape[:1], bias):
        return None
    if min(stride) <= 0 or min(dilation) <= 0 or min(padding) < 0:
        return None
    steps, around, apart = (_for_each(numbers, data.dim() - 2) for numbers in (stride, padding, dilation))
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, p, d in zip(data.shape[2:], weight.shape[2:], steps, around, apart, strict=True)
    ]
    return None if min(sizes) <= 0 else [((data.shape[0], weight.shape[0], *sizes), data.dtype)]


def _for_each(numbers: Sizes, dimensions: int) -> Sizes:
    """One number stands for all dimensions."""
    return [numbers[0]] * dimensions if len(numbers) == 1 else numbers


def _upsampled(data: torch.Tensor, sizes: Sizes, *rest: object) -> Results | None:
    if not _are_usual(data) or not _is_contiguous(data) or data.dim() != len(sizes) + 2 or min(sizes) <= 0:
        return None
    return [((*data.shape[:2], *sizes), data.dtype)]


def _indexed(data: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> Results | None:
    """Of the first dimensions, one index for each."""
    if not indices or len(indices) > data.dim() or not _is_contiguous(data):
        return None
    found = [index for index in indices if index is not None and index.dtype in _INDICES and _is_contiguous(index)]
    if len(found) < len(indices) or any(index.shape != found[0].shape for index in found):
        return None
    return [((*found[0].shape, *data.shape[len(found) :]), data.dtype)]


def _empty_like(
    data: torch.Tensor,
    *,
    dtype: torch.dtype | None = None,
    layout: torch.layout | None = None,
    device: object = None,
    pin_memory: bool | None = None,
    memory_format: torch.memory_format | None = None,
) -> Results | None:
    if not _is_contiguous(data) or layout not in (None, torch.strided):
        return None
    if memory_format not in (None, torch.preserve_format, torch.contiguous_format):
        return None
    return [(data.shape, data.dtype if dtype is None else dtype)]


#: by the operator
RULES: dict[object, Rule] = {
    _aten.addmm.default: _addmm,
    _aten.native_layer_norm.default: _layer_norm,
    _aten.native_group_norm.default: _group_norm,
    _aten.native_batch_norm.default: _batch_norm,
    _aten.convolution.default: _convolution,
    _aten.upsample_nearest1d.default: _upsampled,
    _aten.upsample_nearest2d.default: _upsampled,
    _aten.upsample_nearest3d.default: _upsampled,
    _aten.upsample_linear1d.default: _upsampled,
    _aten.upsample_bilinear2d.default: _upsampled,
    _aten.upsample_bicubic2d.default: _upsampled,
    _aten.upsample_trilinear3d.default: _upsampled,
    _aten.index.Tensor: _indexed,
    _aten.empty_like.default: _empty_like,
}
