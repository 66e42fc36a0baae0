"""Simple operations on small tensors: what they return is seen by running them, on memory that nobody has written.

Fake tensors compute by torch's reference implementations, and those import sympy, which takes a third as long as torch
itself. A process that has not loaded it is spared that as long as its operations are known to return, whatever numbers
they are given, tensors of the same metadata.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.fake.metadata import TensorMeta
from stator.pytorch.fake.operator_facts import CHECKING, LIFTS, is_total, looks_at_numbers, makes_view, name_of
from stator.pytorch.fake.quiet import casts_not_kept, warnings_of_torch
from stator.pytorch.fake.watcher import OpObservation, Watcher
from stator.pytorch.nesting import tensors_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stator.pytorch.types import Args, Function, Kwargs, Nested, OperandMeta, Operator

__all__ = ["observe", "preferable"]

#: elements of an operand, and steps of one operator, at most
_SMALL = 1 << 14
_LONG = 1 << 24


def preferable(metas: Sequence[OperandMeta]) -> bool:
    """Whether operands of this description should be tried before fake ones."""
    return (
        "sympy" not in sys.modules
        and all(_is_small(meta) for meta in metas)
        and internals.innermost_transform() is None
    )


def _is_small(meta: OperandMeta) -> bool:
    if not isinstance(meta, TensorMeta) or meta.symbolic or any(meta.bits) or meta.device.type != "cpu":
        return False
    return math.prod(meta.shape) <= _SMALL and meta.offset + sum(meta.stride) <= _SMALL


class _NotSimple(Exception):
    """An operator that might look at numbers."""


class _Simple(Watcher):
    """Lets simple operators through."""

    real = True

    def __torch_dispatch__(
        self, func: Operator, types: Sequence[type], args: Args = (), kwargs: Kwargs | None = None
    ) -> Nested:
        if not _is_simple(func) or _steps(func, tensors_in((args, kwargs))) > _LONG:
            raise _NotSimple
        return super().__torch_dispatch__(func, types, args, kwargs)


def _steps(func: Operator, operands: Iterable[torch.Tensor]) -> int:
    """More steps than an operator takes: those of an outer product, be it of all operands or of the two largest."""
    sizes = sorted(max(1, tensor.numel()) for tensor in operands)
    return math.prod(sizes if torch.Tag.pointwise in func.tags else sizes[-2:])


@functools.cache
def _is_simple(func: Operator) -> bool:
    if not isinstance(func, internals.OpOverload) or func.namespace != "aten":
        return False
    known = makes_view(func) or is_total(func) or name_of(func) in CHECKING
    return known and not looks_at_numbers(func) and name_of(func) not in LIFTS


def operand(meta: TensorMeta) -> torch.Tensor:
    """A real tensor of this description."""
    made = meta.make()
    # Any number will do, but the same in every run; integers may be indices.
    made.untyped_storage().fill_(int(made.is_floating_point() or made.is_complex()))
    return made


def observe(function: Function, args: Args, kwargs: Kwargs) -> OpObservation | None:
    """Run an operation on real operands; None where it is not simple, or fails."""
    observed = OpObservation()
    try:
        with _Simple(observed), casts_not_kept(), warnings_of_torch(observed.warned):
            observed.result = function(*args, **kwargs)
    except Exception:
        return None  # fake tensors will tell
    return observed
