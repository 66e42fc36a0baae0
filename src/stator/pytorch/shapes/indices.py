"""`tensor[index]` where a part of the index is a symbol: it stays one, so that the graph serves any number.

torch's own indexing takes symbols as bounds of slices only: as an index, one that stands for a size is made a number,
and one that is known when the graph runs is refused. `select` takes both, so that is what an index by a number becomes.
A tensor of one integer is an index like any other: torch reads the number in it.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.fake.metadata import is_symbol
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.lowering import INDICES, NUMBER_TYPES, STAND_INS
from stator.pytorch.tensors.recording import record_function
from stator.pytorch.tensors.scalars import is_integral, number_in
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.space import Space

__all__ = ["by_number", "item_at", "parts_of", "set_item_at", "with_tensors"]

_MASKS = (torch.bool, torch.uint8)


def item_at(tensor: torch.Tensor, index: Any) -> Any:
    """`tensor[index]`."""
    parts = _parts(index)
    if not any(map(is_symbol, parts)):
        return tensor[index]
    part, rest = _selected(tensor, parts)
    return part[rest] if rest else part


def set_item_at(tensor: torch.Tensor, index: Any, value: Any) -> None:
    """`tensor[index] = value`."""
    parts = _parts(index)
    if not any(map(is_symbol, parts)):
        tensor[index] = value
        return
    part, rest = _selected(tensor, parts)
    part[rest or ...] = value


def _parts(index: Any) -> tuple[Any, ...]:
    return index if isinstance(index, tuple) else (index,)


def _selected(tensor: torch.Tensor, parts: tuple[Any, ...]) -> tuple[torch.Tensor, tuple[Any, ...]]:
    """The part of a tensor that the symbols among the parts of an index lead to, and the other parts."""
    counts = [_count(part) for part in parts]
    open_dims = tensor.dim() - sum(counts)
    dim = tensor.dim() if ... in parts else sum(counts)
    for part, count in zip(reversed(parts), reversed(counts), strict=True):
        dim -= open_dims if part is ... else count
        if is_symbol(part):
            size = tensor.shape[dim]  # backends compute addresses without a look at it
            internals.assume(part < size)
            internals.assume(part >= -size)
            tensor = tensor.select(dim, part)
    return tensor, tuple(part for part in parts if not is_symbol(part))


def _count(part: Any) -> int:
    """How many dimensions a part of an index is about."""
    if isinstance(part, torch.Tensor):
        return part.dim() if part.dtype in _MASKS else 1
    return 0 if part is None or part is ... or isinstance(part, bool) else 1


def by_number(space: Space, function: Function, args: list[Value]) -> Value | None:
    """Record `__getitem__` or `__setitem__` as a call of `function`, if there are symbols in the index; else None."""
    parts = parts_of(space, args[1])
    if type(args[0].force()) is not TensorValue or not all(map(_is_simple, parts)):
        return None
    parts = _as_numbers(space, parts)
    if not any(part.symbolic and part.cls is int for part in parts):
        return None
    return record_function(space, function, args[0], space.new_tuple(parts), *args[2:])


def with_tensors(space: Space, args: list[Value], parts: list[Value]) -> list[Value] | None:
    """The arguments of `__getitem__` or `__setitem__`, with tensors for arrays in the index; None if there are none.

    `parts` are those of the index.
    """
    if not any(type(part) in INDICES for part in parts):
        return None
    tensors = (value for value in (args[0].force(), *parts) if isinstance(value, TensorValue))
    if any(tensor.cls not in PLAIN_CLASSES or tensor.meta is None for tensor in tensors):
        return None  # a class of the program's would be shown another index than it is given
    made = [(INDICES[type(part)](space, part) if type(part) in INDICES else None) or part for part in parts]
    if space.trace.recorder.state.modes.asked or all(map(operator.is_, made, parts)):
        return None
    return [args[0], space.new_tuple(made) if args[1].force().cls is tuple else made[0], *args[2:]]


def parts_of(space: Space, index: Value) -> list[Value]:
    """The parts of an index."""
    index = index.force()
    return [part.force() for part in space.unpack(index)] if index.cls is tuple else [index]


def _as_numbers(space: Space, parts: list[Value]) -> list[Value]:
    """The parts of an index, in which tensors of one integer are numbers.

    A backend runs the graph on symbols again, and what is known of a number from later operations must not be news
    there. In the body of an operation such a tensor may be one of many, and has no number.
    """
    nodes = space.trace.recorder.nodes
    return [_as_number(space, part) for part in parts] if nodes.graph is nodes.whole else parts


def _as_number(space: Space, part: Value) -> Value:
    if type(part) in STAND_INS:
        return STAND_INS[type(part)](space, part) or part
    if isinstance(part, TensorValue) and not part.shape and is_integral(part.dtype) and part.dtype not in _MASKS:
        return number_in(space, part) or part
    return part


def _is_simple(part: Value) -> bool:
    """Whether it is clear how many dimensions a part is about; that of a list depends on what is in it."""
    return part.symbolic or isinstance(part, TensorValue) or part.cls in _SIMPLE or part.cls in NUMBER_TYPES


_SIMPLE = (int, bool, slice, type(None), type(...))
