"""`copy.deepcopy` of a tensor: what torch's method does, with one operation where it copies the storage."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.tensors.latent import is_known_leaf
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.facts import holds
from stator.space.protocol import register
from stator.space.signals import Restart
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host, Nested
    from stator.space.space import Space


def with_copied_storage(tensor: torch.Tensor) -> torch.Tensor:
    """A new leaf with a copy of the storage, without gradients. The trace has a model of it."""
    raise NotImplementedError(tensor)


def deepcopy_of(self: Any, memo: dict[int, Any]) -> Nested:
    """`Tensor.__deepcopy__`, of a plain tensor; this is traced."""
    if id(self) in memo:
        return memo[id(self)]
    copied = with_copied_storage(self)
    if self.requires_grad:
        copied.requires_grad_()
    if self.grad is not None:
        copied.grad = self.grad.__deepcopy__(memo)
    for name, item in copy.deepcopy(self.__dict__, memo).items():
        setattr(copied, name, item)
    memo[id(self)] = copied
    return copied


def _deepcopy(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`Tensor.__deepcopy__`. Tensors in one storage lie in one copy of it, for which torch looks into the memo."""
    tensor = args[0].force()
    if not isinstance(tensor, TensorValue) or tensor.cls is not torch.Tensor or not is_known_leaf(tensor):
        raise _refusal("it is of a class of its own, or no leaf")
    if tensor.meta is None or any(tensor.meta.bits) or not _is_alone(space, tensor):
        raise _refusal("its storage holds more than its elements, or has other tensors")
    return space.call(space.existing(deepcopy_of), args, kwargs)


def _is_alone(space: Space, tensor: TensorValue) -> bool:
    """Whether nothing else lies in the storage of a tensor."""
    recorder, root = tensor.recorder, tensor.root
    first, copied = recorder.tracked.copied.get(root, (0, tensor))
    if copied is not tensor:
        raise Restart(first, _refusal("its storage is that of a tensor that was copied").brk)
    alone = _owns_storage(space, root) and (root is tensor or fills_storage(tensor.fake))
    if alone:
        recorder.tracked.copied.setdefault(root, (recorder.trace.steps, tensor))
    return alone


def _owns_storage(space: Space, root: TensorValue) -> bool:
    """Whether a storage consists of the elements of the tensor that came first, and no other has come from outside."""
    recorder = root.recorder
    if root.source is not None:
        return root not in recorder.tracked.rebound and holds(space, root, is_alone, "is alone in its storage")
    return fills_storage(root.fake)


def is_alone(tensor: Host) -> bool:
    """Whether the storage of an existing tensor consists of its elements, and belongs to it alone."""
    # the object that stands for the storage counts
    return fills_storage(tensor) and internals.storage_users(internals.storage_address(tensor.untyped_storage())) == 2


def fills_storage(tensor: Host) -> bool:
    """Whether the storage of a tensor consists of its elements."""
    with internals.DisableTorchFunctionSubclass():
        size = hint_of(tensor.untyped_storage().nbytes())
        return bool(size is not None and size == hint_of(tensor.numel()) * tensor.element_size())


def _with_copied_storage(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return record_method(space, "clone", record_method(space, "detach", args[0].force()))


def _refusal(why: str) -> Unsupported:
    return Unsupported(errors.UnsupportedTensorOperation("Tensor.__deepcopy__", why))


def install() -> None:
    """Register the models."""
    register(torch.Tensor.__deepcopy__, _deepcopy)
    register(with_copied_storage, _with_copied_storage)
