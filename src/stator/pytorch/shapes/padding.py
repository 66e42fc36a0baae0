"""Padding by amounts that vary: where none is more than 0, torch's kernel gives a copy, laid out as its operand is.

    F.pad(image.permute(2, 0, 1), (0, -width % 32, 0, -height % 32))

Else it makes a new tensor, and fills it: that is what torch's rule for tensors without data takes for granted where an
amount is a symbol. Where the two would lie in memory in different ways, it is assumed which of them it is. The copy is
recorded as what the kernel does, a copy of the part that is left, which every backend lays out as eager does.
"""

from __future__ import annotations

import functools
import operator
from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of, same_numbers
from stator.pytorch.nesting import items_of
from stator.pytorch.shapes.symbols import SymValue, compute, decide
from stator.pytorch.tensors.calls import function_handler
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import Handler, register
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stator.pytorch.types import Function, Number
    from stator.space.space import Space

__all__ = ["install"]

_ZERO, _CONSTANT = Constant(0), Constant("constant")
_PADDING = (torch.nn.functional.pad, internals.pad, torch.constant_pad_nd)


def _padding(function: Function) -> Handler:
    """The model of a function that pads."""
    otherwise = function_handler(function)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tensor = args[0].force() if args else None
        given = args[1] if len(args) > 1 else kwargs.get("pad")
        if given is not None and _fills_with_constant(function, args, kwargs) and _is_plain(space, tensor):
            assert isinstance(tensor, TensorValue)
            amounts = None if _is_laid_out_as_new(tensor) else _varying(space, tensor, given)
            if amounts is not None and not _adds(space, amounts):
                return _cut(space, tensor, amounts)
        return otherwise(space, args, kwargs)

    return handler


def _fills_with_constant(function: Function, args: list[Value], kwargs: dict[str, Value]) -> bool:
    """Whether what is added is a number, and not what lies at the edges."""
    if function is torch.constant_pad_nd:
        return True
    mode = (args[2] if len(args) > 2 else kwargs.get("mode", _CONSTANT)).force()
    return type(mode) is Constant and mode.host == "constant"


def _is_plain(space: Space, value: Value | None) -> bool:
    """Whether it is a tensor for which no class and no mode overrides functions."""
    plain = isinstance(value, TensorValue) and value.cls in PLAIN_CLASSES and value.meta is not None
    return plain and not space.trace.recorder.state.modes.asked


def _is_laid_out_as_new(tensor: TensorValue) -> bool:
    """Whether a copy lies in memory as the new tensor for the padded one does: its channels last, or all in order."""
    dims = range(len(tensor.shape))
    orders = [[*dims], [0, *dims[2:], 1]] if len(dims) in (4, 5) else [[*dims]]
    return any(_is_ordered(tensor.shape, tensor.fake.stride(), order) for order in orders)


def _is_ordered(shape: Sequence[Number], stride: Sequence[Number], order: list[int]) -> bool:
    """Whether the dimensions lie in memory without gaps, in this order."""
    expected: Number = 1
    for dim in reversed(order):
        if not same_numbers(stride[dim], expected):
            return False
        expected = expected * shape[dim]
    return True


def _varying(space: Space, tensor: TensorValue, given: Value) -> list[Value] | None:
    """The amounts, if some of them are symbols of known numbers, and none is known to be more than 0."""
    amounts = items_of(space, given.force())
    if not amounts or len(amounts) % 2 or len(amounts) > 2 * len(tensor.shape):
        return None
    numbers = [amount.number if isinstance(amount, SymValue) else _known(amount) for amount in amounts]
    if all(isinstance(number, int) for number in numbers):
        return None
    hints = [None if number is None else hint_of(number) for number in numbers]
    if None in hints or any(isinstance(number, int) and number > 0 for number in numbers):
        return None
    sizes = [hint_of(size) for size in reversed(tensor.shape)]
    pairs = zip(sizes, hints[::2], hints[1::2], strict=False)
    fits = all(size is not None and size + before + after >= 0 for size, before, after in pairs)
    return amounts if fits else None


def _known(amount: Value) -> int | None:
    return amount.host if type(amount) is Constant and amount.cls is int else None


def _adds(space: Space, amounts: list[Value]) -> bool:
    """Whether an amount is more than 0, which is assumed of the largest."""
    largest = functools.reduce(lambda one, other: compute(space, torch.sym_max, [one, other]), amounts)
    return bool(space.truth(compute(space, operator.gt, [largest, _ZERO])))


def _cut(space: Space, tensor: TensorValue, amounts: list[Value]) -> Value:
    """A copy of what is left of the tensor."""
    part: TensorValue = tensor
    for number, (before, after) in enumerate(zip(amounts[::2], amounts[1::2], strict=True)):
        if _is_nothing(space, before) and _is_nothing(space, after):
            continue
        dim = len(tensor.shape) - 1 - number
        size = space.getitem(space.getattr(tensor, "shape"), Constant(dim))
        length = functools.reduce(lambda one, other: compute(space, operator.add, [one, other]), (size, before, after))
        part = record_method(space, "narrow", part, dim, compute(space, operator.neg, [before]), length)
    return record_method(space, "clone", part)


def _is_nothing(space: Space, amount: Value) -> bool:
    """Whether an amount is 0, which is assumed of a symbol."""
    if isinstance(amount, SymValue) and hint_of(amount.number) == 0:
        return bool(decide(space.trace, compute(space, operator.eq, [amount, _ZERO])))
    return _known(amount) == 0


def install() -> None:
    """Register the models."""
    for function in _PADDING:
        register(function, _padding(function))
