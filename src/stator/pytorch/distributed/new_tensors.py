"""Distributed tensors that torch's Python makes of their parts, which it has computed while tracing.

    torch.distributed.tensor.zeros(8, 4, device_mesh=mesh, placements=[Shard(0)])

ends with `DTensor(local, spec, requires_grad=False)`, whose constructor is C++. The Function of `DTensor.from_local`
makes the same of a local tensor without gradients, a mesh, placements, sizes and strides, and is what the graph has. A
spec that is not made of these alone, and a tensor that is a new leaf, are left to Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.distributed.tensor import DTensor

from stator import errors
from stator.guards.callable_names import callable_name
from stator.pytorch import internals
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.space.space import Space

_OF_PARTS: Any = internals.from_torch_tensor


def _is_told_by_parts(local: Any, spec: Any) -> bool:
    """Whether a spec says no more than these parts do. Traced."""
    meta = spec.tensor_meta
    return meta is not None and meta.dtype is local.dtype and spec == type(spec)(spec.mesh, spec.placements, meta)


def _of_parts(local: Any, spec: Any) -> Any:
    """The distributed tensor. Traced."""
    meta = spec.tensor_meta
    parts = spec.mesh, spec.placements, False, meta.shape, meta.stride, None
    return _OF_PARTS.apply(local.detach(), *parts)


def _new(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`DTensor.__new__(DTensor, local, spec, *, requires_grad)`."""
    if len(args) == 3 and list(kwargs) == ["requires_grad"] and space.known(args[0].force()) is DTensor:
        local, spec = args[1].force(), args[2]
        plain = isinstance(local, TensorValue) and local.cls in PLAIN_CLASSES and not local.requires_grad
        if plain and not space.truth(kwargs["requires_grad"]):
            given: list[Value] = [local, spec]
            if space.truth(space.call(space.existing(_is_told_by_parts), given, {})):
                return space.call(space.existing(_of_parts), given, {})
    raise Unsupported(errors.UnsupportedCCall(callable_name(internals.new_dtensor)))


register(internals.new_dtensor, _new)
