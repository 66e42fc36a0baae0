"""Operators of Stator's own, which stand in graphs for what a backend would fail on, or misplace.

They are registered with torch when a graph first needs them, and stay.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch
import torch.library

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Operator

__all__ = ["define", "library"]


@functools.cache
def library(namespace: str = "stator") -> Any:
    """torch's record of the operators in this namespace."""
    return torch.library.Library(namespace, "FRAGMENT")


def define(
    name: str,
    schema: str,
    real: Function,
    fake: Function,
    namespace: str = "stator",
    tags: tuple[torch.Tag, ...] = (),
) -> Operator:
    """Register an operator.

    Args:
        name: what it is called in the namespace.
        schema: its parameters and results, as torch writes them: `(Tensor x, int n) -> Tensor`.
        real: what it does.
        fake: what it gives for fake tensors.
        namespace: where in torch's library it is.
        tags: what torch is told of it.
    """
    own = library(namespace)
    own.define(f"{name}{schema}", tags=tags)
    own.impl(name, real, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{namespace}::{name}", fake, lib=own)
    return getattr(getattr(torch.ops, namespace), name).default
