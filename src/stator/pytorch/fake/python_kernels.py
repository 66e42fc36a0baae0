"""Operations on symbolic sizes are run by torch's kernels in Python, where they do the same as those in C++.

Many operators of ATen have a kernel in C++ that takes sizes as numbers (`constant_pad_nd`, the FFTs, `interpolate`):
given a symbol, it assumes for ever that the size is that of this call, or fails. For these torch has kernels in Python
that compute with symbols, and AOTAutograd uses them. They are not the same functions, though: some take operands that
the kernel in C++ refuses (`interpolate` of integers), which is the one that runs in the end. So the operation is run
with the numbers of this call as well, as it would be in a trace without symbols, and the two results compared.

A size that is in a tensor has no number in this call. Where a kernel in C++ has to ask for it (dropout asks whether
there are elements at all), the kernel in Python is compared with it at a number that the size may be.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.fake.metadata import TensorMeta, expression_of, hint_of, is_symbol, meta_of
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.nesting import tensors_in

if TYPE_CHECKING:
    from stator.pytorch.fake.watcher import OpObservation
    from stator.pytorch.types import FakeOperand, FakeTensorMode, Nested, Number

    #: what a symbolic number is; None where it is not known
    Valued = Callable[[Number], Number]

__all__ = ["agree", "as_numbers", "possible_values"]

#: what a number in a tensor may be: a size as most are first, and then what fewer operations take
_SAMPLES = (6, 3, 2, 1)


def possible_values(operands: list[FakeOperand]) -> Iterator[Valued]:
    """Ways to see numbers in place of symbols that are known only when the graph runs; none if there are none."""
    numbers = [number for operand in operands for number in _numbers_of(operand) if is_symbol(number)]
    if any(hint_of(number) is None for number in numbers):
        for sample in _SAMPLES:
            yield functools.partial(_value, sample)


def _numbers_of(operand: FakeOperand) -> tuple[Number, ...]:
    return tuple(operand.shape) if isinstance(operand, torch.Tensor) else (operand,)


def _value(sample: int, number: Number) -> Number:
    """The number of this call, or what it is if the unknown ones in it are `sample`, or as near as they can be."""
    known = hint_of(number)
    if known is not None or not isinstance(number, torch.SymInt) or expression_of(number) is None:
        return known
    env, expression = number.node.shape_env, expression_of(number)
    values = {}
    for symbol in expression.free_symbols:
        bounds = env.var_to_range[symbol]
        values[symbol] = env.backed_var_to_val.get(symbol, max(bounds.lower, min(sample, bounds.upper)))
    return int(expression.subs(values))


def as_numbers(operands: list[FakeOperand], mode: FakeTensorMode, value_of: Valued) -> list[FakeOperand] | None:
    """Fake tensors and numbers like the operands, with numbers in place of symbols.

    None if there are no symbols, or some of which `value_of` knows nothing, or a tensor of a kind that cannot be made
    again from a short description.
    """
    if not any(map(_is_symbolic, operands)):
        return None
    made: dict[int, FakeOperand] = {}
    with internals.disable_current_modes(), mode:
        for operand in operands:
            if id(operand) not in made:
                made[id(operand)] = found = _as_number(operand, value_of)
                if found is None:
                    return None
    return [made[id(operand)] for operand in operands]


def _as_number(operand: FakeOperand, value_of: Valued) -> FakeOperand | None:
    if not isinstance(operand, torch.Tensor):
        return value_of(operand)
    meta = meta_of(operand, {})
    sizes = None if meta is None else _sizes(operand, value_of)
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


def _sizes(tensor: torch.Tensor, value_of: Valued) -> tuple[Any, ...]:
    """Sizes, strides and offset as numbers."""
    return tuple(map(value_of, tensor.shape)), tuple(map(value_of, tensor.stride())), value_of(tensor.storage_offset())


def agree(
    observed: OpObservation,
    operands: list[FakeOperand],
    expected: OpObservation,
    numbers: list[FakeOperand],
    value_of: Valued,
) -> bool:
    """Whether a run with symbols has done what the run with numbers has."""
    alike = functools.partial(_alike, value_of)
    return (
        (observed.random, observed.effectful, observed.rigid) == (expected.random, expected.effectful, expected.rigid)
        and _written(observed, operands, operands) == _written(expected, numbers, operands)
        and alike(observed.result, expected.result)
        and all(map(alike, operands, numbers))
    )


def _written(observed: OpObservation, operands: list[FakeOperand], named: list[FakeOperand]) -> set[int]:
    """The memory that was written, as that of `named`: the numbers' own tensors are apart, `y[0] += 1` has a view."""
    pairs = zip(tensors_in(operands), tensors_in(named), strict=True)
    return {storage_of(name) for tensor, name in pairs if storage_of(tensor) in observed.written}


def _alike(value_of: Valued, found: Nested, expected: Nested) -> bool:
    if isinstance(expected, torch.Tensor):
        described = _description(expected, value_of)
        return isinstance(found, torch.Tensor) and _description(found, value_of) == described
    if isinstance(expected, list | tuple):
        same = type(found) is type(expected) and len(found) == len(expected)
        return same and all(map(functools.partial(_alike, value_of), found, expected))
    return bool(value_of(found) == expected)


def _description(tensor: torch.Tensor, value_of: Valued) -> object:
    meta = meta_of(tensor, {})
    if meta is None:
        return type(tensor)
    return _sizes(tensor, value_of), meta.dtype, meta.device, meta.requires_grad, meta.is_leaf, meta.bits
