"""Nested tensors made of a padded tensor and a mask, as nn.TransformerEncoder makes one of its input in evaluation.

Its rows are what the mask keeps of the padded tensor's. The layers of an encoder compute on such a tensor as they do on
the padded one with a mask of keys; only the padded places differ, which nobody sees: they become zeros when the result
is padded again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.composed.composed import Composed, bind, dim
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.shapes.assertions import Assertions
from stator.pytorch.shapes.symbols import SymValue
from stator.pytorch.tensors.calls import function_handler
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.scalars import as_number, is_at_hand
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import TRUE, register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.space.space import Space

__all__ = ["install"]

_Base: Any = internals.TensorBase
#: where the layer's function takes a mask, and its kind; of this kind are masks of keys
_MASK, _PADDING = 18, 1


class Masked(Composed):
    """`parts` are the padded tensor (batch, length, features), and what of it there is (batch, length)."""

    __slots__ = ()
    KIND = "a nested tensor"

    def facts(self) -> dict[str, object]:
        padded = self.parts[0]
        return super().facts() | {"device": padded.device, "dtype": padded.dtype, "is_nested": True, "ndim": 3}


def _rebuilt(padded: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    return internals.nested_from_mask(padded, keep, mask_check=False)


Masked.MAKE = staticmethod(_rebuilt)


def _is_left_aligned(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch._nested_tensor_from_mask_left_aligned(tensor, mask)`: whether each row is padded at its end only.

    It is asked to choose the faster road, and masks are made so that it can be taken: it is assumed, and the graph
    checks it. Where a mask differs, the frame runs as ordinary Python.
    """
    given = bind(("t", "mask"), args, kwargs)
    keep = given["mask"]
    _check_shapes(given["t"], keep)
    aligned = record_method(space, "all", record_method(space, "eq", record_method(space, "cumprod", keep, 1), keep))
    condition = as_number(space, aligned, object)
    if condition is None or not space.trace.extension(Assertions).assume(condition):
        raise Unsupported(errors.DataDependentBranch())
    return TRUE


def _check_shapes(tensor: Value, keep: Value) -> None:
    """Refuse what torch's own functions would fail on, or take for something else."""
    plain = isinstance(tensor, TensorValue) and isinstance(keep, TensorValue)
    if not plain or tensor.composed or keep.composed or keep.dtype is not torch.bool:  # type: ignore[attr-defined]
        raise _refusal()
    shape, kept = tensor.shape, keep.shape  # type: ignore[attr-defined]
    if len(shape) != 3 or len(kept) != 2 or not all(map(is_at_hand, (*shape, *kept))) or shape[:2] != kept:
        raise _refusal()


def _refusal() -> Unsupported:
    name = describe_callable(internals.nested_from_mask)
    return Unsupported(errors.UnsupportedTensorOperation(name, "its operands are of another kind than usual"))


def _from_mask(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch._nested_tensor_from_mask(tensor, mask, mask_check=True)`."""
    given = bind(("t", "mask", "mask_check"), args, kwargs)
    _check_shapes(given["t"], given["mask"])
    if space.known(given["mask_check"]) is not False or given["t"].requires_grad:  # type: ignore[attr-defined]
        raise _refusal()
    padded, keep = record_method(space, "clone", given["t"]), record_method(space, "clone", given["mask"])
    return Masked(space, padded, keep)


def _layer(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch._transformer_encoder_layer_fwd(src, …, mask, mask_type)`."""
    source = args[0]
    masked = kwargs or any(not mask.constant or mask.host is not None for mask in args[_MASK:])
    if not isinstance(source, Masked) or len(args) < _MASK or masked:
        raise _refusal()
    padded, keep = source.parts
    padding = record_method(space, "logical_not", keep)
    operation = function_handler(internals.encoder_layer)
    return Masked(space, operation(space, [padded, *args[1:_MASK], padding, Constant(_PADDING)], {}).force(), keep)


def _to_padded(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`nested.to_padded_tensor(padding, output_size)`."""
    given = bind(("self", "padding", "output_size"), args, kwargs)
    source: Any = given["self"]
    padded, keep = source.parts
    size = given["output_size"]
    if size.constant or tuple(map(_number, space.unpack(size))) != tuple(padded.shape):
        raise source.refuse("Tensor.to_padded_tensor")
    there = record_method(space, "unsqueeze", keep, -1)
    return record_method(space, "where", padded, there, given["padding"])


def _number(value: Value) -> object:
    value = value.force()
    return value.number if isinstance(value, SymValue) else value.host


def _is_floating(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Constant(args[0].parts[0].dtype.is_floating_point)  # type: ignore[attr-defined]


Masked.models = {
    internals.encoder_layer: _layer,
    _Base.to_padded_tensor: _to_padded,
    _Base.dim: dim,
    _Base.is_floating_point: _is_floating,
}


def install() -> None:
    """Register the models."""
    register(internals.left_aligned, _is_left_aligned)
    register(internals.nested_from_mask, _from_mask)
