"""Questions about classes of tensors, by what torch itself looks at."""

from __future__ import annotations

import torch

from stator.pytorch import internals

__all__ = ["PLAIN_CLASSES", "has_dispatch", "is_plain_class"]

#: classes whose instances behave as plain tensors do
PLAIN_CLASSES: set[type] = {torch.Tensor, torch.nn.Parameter}

_NO_DISPATCH = torch.Tensor.__dict__["__torch_dispatch__"]


def is_plain_class(cls: type) -> bool:
    """Whether operations on tensors of the class are torch's own, with plain tensors as results."""
    return cls is torch.Tensor or _raw(cls, "__torch_function__") is internals.disabled_torch_function


def has_dispatch(cls: type) -> bool:
    """Whether the class acts below autograd, where no trace follows it."""
    found = _raw(cls, "__torch_dispatch__")
    overrides = found is not internals.disabled_torch_function and found is not internals.disabled_torch_dispatch
    return overrides and found is not _NO_DISPATCH


def _raw(cls: type, name: str) -> object:
    """The attribute as it is found along the MRO."""
    return next((base.__dict__[name] for base in cls.__mro__ if name in base.__dict__), None)
