"""Operations on symbolic sizes are run by torch's kernels in Python, where they do the same as those in C++.

Many operators of ATen have a kernel in C++ that takes sizes as numbers (`constant_pad_nd`, the FFTs, `interpolate`):
given a symbol, it assumes for ever that the size is that of this call, or fails. For these torch has kernels in Python
that compute with symbols, and AOTAutograd uses them. They are not the same functions, though: some take operands that
the kernel in C++ refuses (`interpolate` of integers), which is the one that runs in the end. So the operation is run
with the numbers of this call as well, as it would be in a trace without symbols, and the two results compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.fake.metadata import TensorMeta, hint_of, is_symbol, meta_of
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.nesting import tensors_in

if TYPE_CHECKING:
    from stator.pytorch.fake.watcher import OpObservation
    from stator.pytorch.types import FakeOperand, FakeTensorMode, Nested

__all__ = ["agree", "as_numbers"]


def as_numbers(operands: list[FakeOperand], mode: FakeTensorMode) -> list[FakeOperand] | None:
    """Fake tensors and numbers like the operands, with the sizes of this call in place of symbols.

    None if there are no symbols, or some that are known only when the graph runs, or a tensor of a kind that cannot be
    made again from a short description.
    """
    if not any(map(_is_symbolic, operands)):
        return None
    made: dict[int, FakeOperand] = {}
    with internals.disable_current_modes(), mode:
        for operand in operands:
            if id(operand) not in made:
                made[id(operand)] = found = _as_number(operand)
                if found is None:
                    return None
    return [made[id(operand)] for operand in operands]


def _as_number(operand: FakeOperand) -> FakeOperand | None:
    if not isinstance(operand, torch.Tensor):
        return hint_of(operand)
    meta = meta_of(operand, {})
    sizes = None if meta is None else _sizes(operand)
    if meta is None or sizes is None or None in (*sizes[0], *sizes[1], sizes[2]):
        return None
    plain = TensorMeta()
    plain.shape, plain.stride, plain.offset = sizes
    plain.symbolic = False
    for name in ("dtype", "device", "requires_grad", "is_leaf", "is_view", "bits"):
        setattr(plain, name, getattr(meta, name))
    return plain.make()


def _is_symbolic(operand: FakeOperand) -> bool:
    return is_symbol(operand) or any(map(internals.has_symbolic_sizes, tensors_in(operand)))


def _sizes(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Sizes, strides and offset as they are in this call."""
    return (
        tuple([hint_of(n) for n in tensor.shape]),
        tuple([hint_of(n) for n in tensor.stride()]),
        hint_of(tensor.storage_offset()),
    )


def agree(
    observed: OpObservation, operands: list[FakeOperand], expected: OpObservation, numbers: list[FakeOperand]
) -> bool:
    """Whether a run with symbols has done what the run with numbers has."""
    return (
        (observed.random, observed.effectful, observed.rigid) == (expected.random, expected.effectful, expected.rigid)
        and _written(observed, operands) == _written(expected, numbers)
        and _alike(observed.result, expected.result)
        and all(map(_alike, operands, numbers))
    )


def _written(observed: OpObservation, operands: list[FakeOperand]) -> list[bool]:
    return [storage_of(tensor) in observed.written for tensor in tensors_in(operands)]


def _alike(found: Nested, expected: Nested) -> bool:
    if isinstance(expected, torch.Tensor):
        return isinstance(found, torch.Tensor) and _description(found) == _description(expected)
    if isinstance(expected, list | tuple):
        return type(found) is type(expected) and len(found) == len(expected) and all(map(_alike, found, expected))
    return bool(hint_of(found) == expected)


def _description(tensor: torch.Tensor) -> object:
    meta = meta_of(tensor, {})
    if meta is None:
        return type(tensor)
    return _sizes(tensor), meta.dtype, meta.device, meta.requires_grad, meta.is_leaf, meta.bits
