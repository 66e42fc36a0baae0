"""Facts of existing tensors that few programs ask for, and that the guard on a tensor therefore leaves open.

They are where a tensor begins in its storage, and how autograd came by it. `b[:4]` and `b[4:]` pass one guard, and
so do a leaf and a result of autograd. Whatever in a trace depends on such a fact calls the function for it here, which
guards the fact as it was when the trace began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.guards.guard import Unrecorded
from stator.pytorch import internals
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.tensors.tables import METADATA
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.facts import answer, holds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stator.pytorch.tensors.lowering import Call
    from stator.pytorch.traced import TracedTensor
    from stator.pytorch.types import Function, Host
    from stator.space.value import Value

__all__ = [
    "is_known_leaf",
    "rely_on_all",
    "rely_on_autograd",
    "rely_on_leaf",
    "rely_on_offset",
    "rely_on_place_in_storage",
    "told_by_guard",
]

_Base: Any = internals.TensorBase
_is_leaf = vars(_Base)["is_leaf"].__get__
_requires_grad = vars(_Base)["requires_grad"].__get__
_base = internals.base


def told_by_guard(function: Function) -> bool:
    """Whether the answer of a function that reads metadata follows from what the guard on a tensor compares."""
    name = getattr(function, "__name__", "")
    return name in METADATA and name != "storage_offset"


def rely_on_offset(value: TracedTensor) -> None:
    """The trace depends on where in its storage the tensor begins."""
    # A result that lies in an existing storage begins where its operand does, or further on. Of several that lie in
    # one storage, any may be the operand.
    host = value.root.host
    if host is None or host.layout is not torch.strided:
        return
    storage = storage_of(host)
    for other in [value.root, *value.recorder.tracked.existing]:
        if other.host.layout is torch.strided and storage_of(other.host) == storage:
            _guard(other, storage_offset, "{}.storage_offset()")


def rely_on_place_in_storage(call: Call) -> None:
    """`as_strided` with an offset counts from the beginning of the storage, and Inductor from that of the tensor."""
    fixed = len(call.args) > 3 or "storage_offset" in call.kwargs
    if fixed and "as_strided" in getattr(call.function, "__name__", ""):
        for operand in tensors_among(call.operands):
            rely_on_offset(operand)
            host = operand.root.host
            operand.recorder.tracked.in_order |= host is not None and storage_offset(host) != 0


def rely_on_leaf(value: TracedTensor) -> None:
    """The trace depends on whether the tensor is a leaf: one that needs no gradient always is."""
    if value.root.host is not None and _requires_grad(value.root.host):
        _guard(value.root, is_leaf, "{}.is_leaf")


def is_known_leaf(value: TracedTensor) -> bool:
    """Whether nothing in autograd's graph lies before the tensor; the trace depends on it."""
    rely_on_leaf(value)
    return bool(value.meta.is_leaf if value.meta is not None else value.fake.is_leaf)


def rely_on_autograd(value: TracedTensor) -> None:
    """The trace depends on what autograd thinks of a write to the tensor."""
    root = value.root
    if root.host is None or not _varies(root):
        return
    # Mostly it is one that autograd has never heard of: a buffer, a running statistic. That is seen without Python.
    if not holds(root.recorder.trace.space, root, is_leaf_and_no_view, "is a leaf and no view", Unrecorded):
        _guard(root, place_in_autograd, "place_in_autograd")


def rely_on_all(values: Iterable[Value]) -> None:
    """The trace depends on the tensors in ways that are not known."""
    for tensor in tensors_among(values):
        rely_on_offset(tensor)
        rely_on_autograd(tensor)


def _guard(value: TracedTensor, read: Callable[[Host], object], name: str) -> None:
    if _varies(value):
        answer(value.recorder.trace.space, value, read, name)


def _varies(value: TracedTensor) -> bool:
    """Whether the next call may find another tensor here: a leaf that the program makes anew each time is as it was."""
    return value.source is not None and value not in value.recorder.tracked.new_leaves


def storage_offset(tensor: torch.Tensor) -> int:
    """Where in its storage a tensor begins, in elements."""
    with internals.DisableTorchFunctionSubclass():
        return int(_Base.storage_offset(tensor))


def is_leaf(tensor: torch.Tensor) -> bool:
    """Whether autograd has no operation that made the tensor."""
    with internals.DisableTorchFunctionSubclass():
        return bool(_is_leaf(tensor))


def place_in_autograd(tensor: torch.Tensor) -> tuple[object, ...]:
    """What autograd looks at when the tensor is written: is it a leaf, and what is it a view of?"""
    with internals.DisableTorchFunctionSubclass():
        if not internals.is_view(tensor):
            return (bool(_is_leaf(tensor)),)
        base = _base(tensor)
        made = int(internals.creation_meta(tensor))
        return bool(_is_leaf(tensor)), made, bool(_is_leaf(base)), bool(_requires_grad(base))


def is_leaf_and_no_view(tensor: torch.Tensor) -> bool:
    """Whether it is what each tensor is that autograd keeps nothing about."""
    return place_in_autograd(tensor) == (True,)
