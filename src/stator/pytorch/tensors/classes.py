"""Questions about classes of tensors, by what torch itself looks at.

A *wrapper* is a tensor that holds others: the `__torch_dispatch__` of its class says what an operation on it does to
those inside. It is *traceable* if `__tensor_flatten__` says which they are, and `__tensor_unflatten__` makes one.
"""

from __future__ import annotations

import contextlib
from types import MemberDescriptorType
from typing import TYPE_CHECKING

import torch
from torch.nn.parameter import UninitializedTensorMixin  # type: ignore[attr-defined]

from stator.pytorch import internals

if TYPE_CHECKING:
    from collections.abc import Collection

    from stator.pytorch.types import Host

__all__ = [
    "PLAIN_CLASSES",
    "WRAPPER_METHODS",
    "attributes_of",
    "has_dispatch",
    "holds_opaque",
    "inner_tensors",
    "is_no_operand",
    "is_plain_class",
    "is_traceable",
    "is_wrapper",
    "may_have_symbols",
    "overrides_functions",
    "slots_of",
]

#: classes whose instances behave as plain tensors do
PLAIN_CLASSES: set[type] = {torch.Tensor, torch.nn.Parameter}

_NO_DISPATCH = torch.Tensor.__dict__["__torch_dispatch__"]


def is_plain_class(cls: type) -> bool:
    """Whether operations on tensors of the class are torch's own, with plain tensors as results."""
    return cls is torch.Tensor or not (overrides_functions(cls) or has_dispatch(cls))


def overrides_functions(cls: type) -> bool:
    """Whether torch asks the class what its functions do."""
    return cls is not torch.Tensor and _raw(cls, "__torch_function__") is not internals.disabled_torch_function


def has_dispatch(cls: type) -> bool:
    """Whether the class acts below autograd, where no trace follows it."""
    found = _raw(cls, "__torch_dispatch__")
    overrides = found is not internals.disabled_torch_function and found is not internals.disabled_torch_dispatch
    return overrides and found is not _NO_DISPATCH


def is_wrapper(cls: type) -> bool:
    """Whether operations on tensors of the class are what the program says, below autograd."""
    return cls is not torch.Tensor and not hasattr(cls, "_mode_key") and has_dispatch(cls)


def is_traceable(cls: type) -> bool:
    """Whether it is a class of wrappers that torch's compilers can take apart and make again."""
    return hasattr(cls, "__tensor_flatten__") and hasattr(cls, "__tensor_unflatten__") and is_wrapper(cls)


def is_no_operand(cls: type) -> bool:
    """Whether no graph takes tensors of the class: wrappers that cannot be taken apart, what has no sizes yet."""
    return (has_dispatch(cls) and not is_traceable(cls)) or issubclass(cls, UninitializedTensorMixin)


#: what such a class consists of
WRAPPER_METHODS = ("__torch_dispatch__", "__tensor_flatten__", "__tensor_unflatten__")


def inner_tensors(wrapper: Host) -> dict[str, Host]:
    """The tensors in a wrapper, by the attributes that hold them."""
    if not is_traceable(type(wrapper)):
        return {name: item for name, item in attributes_of(wrapper).items() if isinstance(item, torch.Tensor)}
    with internals.DisableTorchFunctionSubclass():
        names, _ = wrapper.__tensor_flatten__()
        parts = {name: getattr(wrapper, name) for name in names}  # some hold opaque objects as well
        return {name: part for name, part in parts.items() if isinstance(part, torch.Tensor)}


def attributes_of(wrapper: Host) -> dict[str, Host]:
    """What a wrapper holds in its `__dict__` and in its `__slots__`."""
    held = dict(vars(wrapper))
    for name in slots_of(type(wrapper)):
        with contextlib.suppress(AttributeError):  # nothing
            held[name] = object.__getattribute__(wrapper, name)
    return held


#: whether torch can have symbols for the lengths of rows where the program makes jagged tensors of tensors
_ROWS_ARE_SYMBOLS = internals.is_at_least(2, 15)


def may_have_symbols(wrapper: torch.Tensor) -> bool:
    """Whether torch makes fake wrappers like this one with symbols in their sizes.

    Of a wrapper in a wrapper, and of the base of one that is a view, it takes the sizes as they are; of a jagged tensor
    versions before 2.15 do.
    """
    if not is_traceable(type(wrapper)) or (internals.is_view(wrapper) and not _is_of_rows(wrapper)):
        return False
    if wrapper.is_nested and not _ROWS_ARE_SYMBOLS:
        return False
    return not any(is_wrapper(type(inner)) for inner in inner_tensors(wrapper).values())


def _is_of_rows(wrapper: torch.Tensor) -> bool:
    """Whether it is a jagged tensor that is a view of its rows, one after the other."""
    return wrapper.is_nested and not internals.base(wrapper).is_nested


def holds_opaque(cls: type) -> bool:
    """Whether wrappers of the class have what they hold in `__slots__`, where C++ code finds it."""
    return issubclass(cls, torch.Tensor) and is_wrapper(cls) and bool(slots_of(cls))


def slots_of(cls: type) -> Collection[str]:
    """The names in `__slots__` of a subclass."""
    own = [vars(base) for base in cls.__mro__ if base is not torch.Tensor and issubclass(base, torch.Tensor)]
    names = [name for members in own for name, found in members.items() if type(found) is MemberDescriptorType]
    return dict.fromkeys(names)


def _raw(cls: type, name: str) -> object:
    """The attribute as it is found along the MRO."""
    return next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), None)
