"""Fake tensors with other sizes than they have, some of which are symbols: `view` and `reshape`.

torch takes such a view apart, dimension by dimension. That loses what the program says: with windows of 4 in an image,

    x.view(batch, height // 4, 4, width // 4, 4, channels)

has a size of `height // (height // 4)` in the place of the first 4, and each step assumes something of such terms: 40
ms for the view, and up to a second for the operations that meet these sizes. Here the sizes are those that were asked
for. What has to hold is that there are as many elements: `height` is divisible by 4.

Whether `reshape` copies, torch finds by comparing all sizes and strides. Here as much is assumed as decides that it
has to copy: the innermost dimensions that do not lie one within the other, and that no size asked for ends there.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.fake.metadata import DIVISIONS, expression_of, hint_of, is_symbol, number_of, same_numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    import sympy  # type: ignore[import-untyped]
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.pytorch.types import Args, Fake, Function, Number, Operator

__all__ = ["REPLACED", "view"]

_VIEWS = frozenset({torch.ops.aten.view.default, internals.unsafe_view})


def view(mode: internals.FakeTensorMode, func: Operator, args: Args) -> Fake | None:
    """What a view is; None where it is another operator, or torch has to tell."""
    if func not in _VIEWS or mode.shape_env is None:
        return None
    tensor, asked = args
    if not any(map(is_symbol, (*tensor.shape, *asked))) or not _is_known(*tensor.shape, *tensor.stride(), *asked):
        return None
    if not _is_contiguous(tensor):
        return None
    sizes = _sizes(mode.shape_env, tensor.shape, asked)
    if sizes is None:
        return None
    found: Fake = torch.as_strided(tensor, sizes, _strides(sizes))
    return found


def _reshaped(whole: Function, tensor: Fake, *asked: Any, **named: Any) -> Fake:
    """`reshape` as `whole` does it, if it is not plain to see that it has to copy."""
    given = asked or tuple(named.values())
    shape = given[0] if len(given) == 1 and isinstance(given[0], Sequence) else given
    if isinstance(tensor, internals.fake_tensor.FakeTensor) and _has_to_copy(tensor, shape):
        return internals.unsafe_view(tensor.clone(memory_format=torch.contiguous_format), list(shape))
    return whole(tensor, *asked, **named)


#: what runs in the place of functions where there are symbols
REPLACED: dict[Function, Function] = {
    each: functools.partial(_reshaped, each) for each in (torch.reshape, torch.Tensor.reshape)
}


def _has_to_copy(tensor: Fake, asked: Sequence[Number]) -> bool:
    """Whether a tensor with these sizes needs memory of its own; if so, what decides it is assumed."""
    if tensor.layout is not torch.strided:
        return False
    numbers = (*tensor.shape, *tensor.stride(), *asked)
    if not any(map(is_symbol, numbers)) or not _is_known(*numbers) or not _may_have(tensor, asked):
        return False
    outer, new = list(zip(tensor.shape, tensor.stride(), strict=True)), list(asked)
    while outer:
        elements, step = outer.pop()
        while outer and same_numbers(outer[-1][1], elements * step):
            elements = elements * outer.pop()[0]
        if not outer:
            break
        size, stride = outer[-1]
        found = before = 1
        while new and hint_of(new[-1]) > 0 and hint_of(found) < hint_of(elements):
            before, found = found, found * new.pop()
        if same_numbers(found, elements):
            continue
        decisive = hint_of(stride) != hint_of(elements * step) and hint_of(size) != 1
        if decisive and hint_of(before) < hint_of(elements) < hint_of(found):
            some = (number != 0 for number in (*tensor.shape, *asked))
            return all(map(bool, (*some, stride != elements * step, size != 1, before < elements, elements < found)))
        break
    return False


def _may_have(tensor: Fake, asked: Sequence[Number]) -> bool:
    """Whether a tensor has as many elements as it is to have."""
    if not _are_sizes(asked):
        return False
    wanted = math.prod(map(hint_of, asked))
    elements = hint_of(tensor.numel())
    return bool(elements % wanted == 0 if wanted < 0 else elements == wanted)


def _are_sizes(asked: Sequence[Number]) -> bool:
    """Whether all are sizes, but for one -1 at most."""
    others = [size for size in asked if hint_of(size) < 0]
    return not others or (len(others) == 1 and type(others[0]) is int and others[0] == -1)


def _is_known(*numbers: Number) -> bool:
    """Whether all are numbers, or known in this call to be some other than none."""
    return all(type(number) in (int, torch.SymInt) and hint_of(number) for number in numbers)


def _strides(sizes: Sequence[Number]) -> list[Number]:
    return list(itertools.accumulate(reversed(sizes[1:]), operator.mul, initial=1))[::-1] if sizes else []


def _expression(number: Number) -> Any:
    return expression_of(number) if is_symbol(number) else number


def _is_contiguous(tensor: Fake) -> bool:
    """Whether the strides are written as the products that they are, once it is assumed that there are elements.

    For a size that may be none, torch writes a new tensor's strides with `Max(1, size)`.
    """
    pairs = zip(tensor.stride(), _strides(tensor.shape), strict=True)
    if not all(_of_some(_expression(stride)) == _expression(expected) for stride, expected in pairs):
        return False
    sizes = [size for size in tensor.shape if is_symbol(size) and not _expression(size).is_positive]
    return all(bool(size != 0) for size in sizes)


def _of_some(stride: Any) -> Any:
    """A stride, if no size is none."""
    return stride if isinstance(stride, int) else stride.replace(_is_at_least_one, lambda part: part.args[1])


def _is_at_least_one(part: sympy.Basic) -> bool:
    return type(part).__name__ == "Max" and len(part.args) == 2 and part.args[0] == 1


def _sizes(env: ShapeEnv, own: Sequence[Number], asked: Sequence[Number]) -> list[Number] | None:
    """The sizes asked for, once it is assumed that they are as many elements; None where that is not plain to see."""
    if not _are_sizes(asked):
        return None
    sizes = list(asked)
    missing = [place for place, size in enumerate(sizes) if hint_of(size) < 0]
    left = _product(own) / _product(size for place, size in enumerate(sizes) if place not in missing)
    if missing and left.as_numer_denom()[1] == 1:
        sizes[missing[0]] = number_of(env, left)
        return sizes
    return None if missing or not _assume_divisible(env, left) else sizes


def _product(sizes: Iterable[Number]) -> sympy.Expr:
    import sympy

    return sympy.Mul(*map(_expression, sizes))


def _assume_divisible(env: ShapeEnv, left: sympy.Expr) -> bool:
    """Assume that what is divided in an expression is divisible, if the expression is 1 then."""
    divided = [each.args for each in left.find(_is_division)]
    if left.replace(_is_division, lambda division: operator.truediv(*division.args)) != 1:
        return False
    rests = [number_of(env, whole) % int(divisor) for whole, divisor in divided]
    return not any(map(hint_of, rests)) and all(bool(rest == 0) for rest in rests)


def _is_division(expression: sympy.Basic) -> bool:
    return type(expression).__name__ in DIVISIONS and expression.args[1].is_Integer
