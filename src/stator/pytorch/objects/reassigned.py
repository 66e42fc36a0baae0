"""What changes the tensor that an object is: `x.data = y`, `requires_grad_`, `detach_`, `set_`, `nn.Parameter(t)`.

A new tensor just becomes another (see `rebinding`) or a leaf (`leaves`). Of one that existed before the trace, whoever
holds it sees the change when the graph has run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.utils

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.metadata import bits_of, is_describable
from stator.pytorch.objects.leaves import begin_leaf, begin_leaf_of, data_of, lend, move_leaf
from stator.pytorch.objects.rebinding import Rebound, become, hand_over
from stator.pytorch.tensors.classes import PLAIN_CLASSES, has_dispatch, is_plain_class
from stator.pytorch.tensors.latent import is_known_leaf, rely_on_autograd
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.subclass import as_subclass
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.protocol import FALSE, TRUE, register
from stator.space.value import Constant, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space

__all__ = ["assign_data", "set_requires_grad"]

_Base: Any = internals.TensorBase


def _refusal(name: str, why: str) -> Unsupported:
    return Unsupported(errors.UnsupportedTensorOperation(name, why))


def _are_plain(*values: Value) -> bool:
    """Whether all are dense tensors that no class, and no transform at work, makes something else of."""
    tensors = tensors_among(values)
    return len(tensors) == len(values) and all(map(_is_plain, tensors)) and not internals.are_transforms_active()


def _is_plain(value: TensorValue) -> bool:
    if value.cls not in PLAIN_CLASSES:
        return False
    return not any(bits_of(value.fake) if value.meta is None else value.meta.bits) and (
        value.meta is not None or is_describable(value.fake)
    )


def _is_view(value: TensorValue) -> bool:
    return bool(internals.is_view(value.fake) if value.meta is None else value.meta.is_view)


def _as_eager(space: Space, function: Function, *args: Host) -> None:
    """Raise in the program what eager execution raises for small tensors alike."""
    try:
        function(*args)
    except RuntimeError as e:
        raise Raised(space.exception(e)) from None


def _small(like: TensorValue, requires_grad: bool = False) -> torch.Tensor:
    with torch.inference_mode(False), torch.enable_grad():
        return torch.empty((0,), dtype=like.dtype, device=like.device, requires_grad=requires_grad)


def _rebound(space: Space, value: TensorValue, before: TensorValue) -> Rebound:
    """The note that the object has become another; of one that existed before, generated code is to know."""
    if value.source is not None:
        space.mark_mutated(value)
    first = before if value.source is not None else None
    return value.recorder.tracked.rebound.setdefault(value, Rebound(first))  # type: ignore[return-value]


# -- x.data = y -------------------------------------------------------------------------------------------------------


def assign_data(space: Space, tensor: TensorValue, value: Value) -> bool:
    """`tensor.data = value`; False where that has no model."""
    if value is tensor:
        return True  # its own data again
    if not isinstance(value, TensorValue) or not _are_plain(tensor, value):
        return False
    if _is_view(tensor) and tensor.requires_grad:
        return False
    _as_eager(space, setattr, _small(tensor, tensor.requires_grad), "data", _small(value))
    _take(space, tensor, data_of(space, value), "data")
    return True


def _take(space: Space, tensor: TensorValue, data: TensorValue, method: str) -> None:
    """The object has the memory of `data`, and its own place in autograd's graph."""
    tracked, wanted = tensor.recorder.tracked, tensor.requires_grad
    known = tracked.rebound.get(tensor)
    if known is not None and known.is_leaf:
        hand_over(tensor, f"Tensor.{method}")
        begin_leaf(space, tensor, data, wanted)
        return
    if wanted and not _fits(tensor, data):
        raise _refusal(f"Tensor.{method} = …", "gradients of the tensor would be of other sizes, or of another type")
    before = hand_over(tensor, f"Tensor.{method}")
    rebound = _rebound(space, tensor, before)
    if tensor.source is not None:
        rebound.data, rebound.method = data, method
    if wanted:
        tracked.scattered = "the data of a leaf was exchanged"
        move_leaf(space, tensor, before, data)
    else:
        become(tensor, data)


def _fits(ours: TensorValue, theirs: TensorValue) -> bool:
    """Whether gradients of one tensor are like those of the other."""
    return _kind(ours) == _kind(theirs) and bool(ours.shape == theirs.shape)


def _set(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`tensor.set_(other)`."""
    tensor, other = args[0].force(), args[-1].force()
    name = "Tensor.set_"
    if len(args) != 2 or kwargs or not _are_plain(tensor, other):
        raise _refusal(name, "it is given something else than a tensor, whose storage the other takes over")
    assert isinstance(tensor, TensorValue) and isinstance(other, TensorValue)
    if _is_view(tensor):
        raise _refusal(name, "it changes what a view is")
    if _kind(tensor) != _kind(other) or (torch.is_grad_enabled() and (tensor.requires_grad or other.requires_grad)):
        raise _refusal(name, "the tensors require gradients, or are of different types")
    rely_on_autograd(tensor)
    if other is not tensor:
        _take(space, tensor, data_of(space, other), "set_")
    return tensor


def _kind(value: TensorValue) -> tuple[object, ...]:
    return value.dtype, value.device


# -- leaves -----------------------------------------------------------------------------------------------------------


def _requires_grad(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`tensor.requires_grad_(flag)`."""
    flags = [*args[1:], *kwargs.values()] or [TRUE]
    tensor = args[0].force()
    flag = space.known(flags[0].force())
    if len(flags) == 1 and isinstance(tensor, TensorValue) and set_requires_grad(space, tensor, flag):
        return tensor
    raise Unsupported(errors.NewLeaf("Tensor.requires_grad_"))


def set_requires_grad(space: Space, tensor: TensorValue, wanted: object) -> bool:
    """`tensor.requires_grad = wanted`; False where that has no model."""
    if wanted is tensor.requires_grad:
        return True
    if type(wanted) is not bool or not _are_plain(tensor):
        return False
    if not wanted:
        leaf = is_known_leaf(tensor)
        example = _small(tensor, True)
        _as_eager(space, torch.Tensor.requires_grad_, example if leaf else example.clone(), False)
        _leave_autograd(space, tensor)
        return True
    _as_eager(space, torch.Tensor.requires_grad_, _small(tensor))
    if tensor.source is None:
        begin_leaf_of(space, tensor)
        return True
    rebound = tensor.recorder.tracked.rebound.get(tensor)
    return _lend(space, tensor) if rebound is None else _back_to_first(tensor, rebound)


def _lend(space: Space, tensor: TensorValue) -> bool:
    """A tensor that existed before becomes a leaf."""
    rely_on_autograd(tensor)
    data = data_of(space, tensor)
    before = hand_over(tensor, "Tensor.requires_grad_")
    _rebound(space, tensor, before).leaf = lend(space, tensor, before, data)
    return True


def _back_to_first(tensor: TensorValue, rebound: Any) -> bool:
    """The tensor, which did not require gradients for a while, is what it was when the trace began."""
    first = rebound.first
    if first is None or rebound.data is not None or not first.requires_grad or first.operation is not None:
        return False
    hand_over(tensor, "Tensor.requires_grad_")
    become(tensor, first)
    tensor.recorder.tracked.scattered = _switched(tensor)
    return True


def _switched(tensor: TensorValue) -> str:
    source = tensor.source
    named = f" of {tensor.recorder.trace.root.names.quoted(source)}" if source is not None else ""
    return f"`requires_grad`{named} was switched"


def _leave_autograd(space: Space, tensor: TensorValue) -> None:
    """The object, in the same memory, is no longer in autograd's graph."""
    plain = record_method(space, "detach", tensor)
    before = hand_over(tensor, "Tensor.detach_")
    rebound = _rebound(space, tensor, before)
    if rebound.is_leaf:
        rebound.is_leaf, rebound.data = False, None
        tensor.recorder.tracked.scattered = _switched(tensor)
    become(tensor, plain)


def _detach(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`tensor.detach_()`."""
    tensor = args[0].force()
    if len(args) != 1 or kwargs or not _are_plain(tensor):
        raise _refusal("Tensor.detach_", "it changes what a tensor of this kind is")
    assert isinstance(tensor, TensorValue)
    rely_on_autograd(tensor)
    if _is_view(tensor):
        _as_eager(space, torch.Tensor.detach_, _small(tensor)[:])
    if tensor.requires_grad:
        _leave_autograd(space, tensor)
    return tensor


def _make_subclass(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`Tensor._make_subclass(cls, data, requires_grad)`, with which `nn.Parameter` makes itself."""
    given = dict(zip(("cls", "data", "require_grad"), args, strict=False)) | kwargs
    cls, data = space.known(given["cls"].force()), given["data"].force()
    wanted = space.known(given.get("require_grad", FALSE).force())
    known = is_plain_class(cls) or not (wanted or has_dispatch(cls) or space.trace.classes.is_fresh(cls))
    if len(given) > 3 or not known or not _are_plain(data):
        raise _refusal("Tensor._make_subclass", "it makes a tensor of another kind")
    assert isinstance(data, TensorValue)
    if not is_plain_class(cls):
        return as_subclass(space, record_method(space, "detach", data), cls)
    if wanted:
        _as_eager(space, torch.Tensor.requires_grad_, _small(data))
    made = TensorValue(data.recorder, cls, None)
    begin_leaf(space, made, record_method(space, "detach", data), bool(wanted))
    return made


def _swap_tensors(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.utils.swap_tensors(a, b)`, of two new tensors."""
    first, second = args[0].force(), args[-1].force()
    tracked = space.trace.recorder.tracked
    if len(args) != 2 or kwargs or not _are_plain(first, second) or first is second:
        raise _refusal("torch.utils.swap_tensors", "it swaps tensors of other classes")
    assert isinstance(first, TensorValue) and isinstance(second, TensorValue)
    for tensor in (first, second):
        if tensor.source is not None or tensor.fields or tensor._attrs is not None or tensor in tracked.rebound:
            raise _refusal("torch.utils.swap_tensors", "it swaps tensors that existed before, or have attributes")
        if _is_held(tensor):
            raise _refusal("torch.utils.swap_tensors", "a view of one of them, or autograd, may hold it")
    states = [hand_over(tensor, "torch.utils.swap_tensors") for tensor in (second, first)]
    for tensor, state in zip((first, second), states, strict=True):
        become(tensor, state)
        tensor.cls = state.cls
    return Constant(None)


def _is_held(tensor: TensorValue) -> bool:
    """Whether what was made of a tensor, or autograd, keeps it: then torch may refuse to make another of it."""
    operations = tensor.recorder.nodes.operations
    made = [value for user in tensor.node.users if user in operations for value in operations[user].made_values]
    return tensor.requires_grad or any(value.requires_grad or value.root is tensor.root for value in made)


def install() -> None:
    """Register the models."""
    register(_Base.requires_grad_, _requires_grad)
    register(_Base.detach_, _detach)
    register(_Base.set_, _set)
    register(internals.make_subclass, _make_subclass)
    register(torch.utils.swap_tensors, _swap_tensors)
