"""Walks over arguments and results: what is nested in tuples, lists and dicts, on the host and as traced values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import torch

from stator.space.protocol import MODELS

if TYPE_CHECKING:
    from stator.pytorch.types import Nested
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = [
    "Bare",
    "is_sequence",
    "items_of",
    "leaves_of",
    "map_leaves",
    "map_values",
    "part_of",
    "rebuilt",
    "tensors_in",
    "value_of",
    "values_in",
]


class Bare(str):
    """A name in the text of nested arguments: strings are shown in quotes, and this is not."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def leaves_of(nested: Nested) -> Iterator[Nested]:
    """What is in tuples, lists and dicts, however deep; the object itself if it is none of them."""
    if isinstance(nested, tuple | list):
        for item in nested:
            yield from leaves_of(item)
    elif isinstance(nested, dict):
        for item in nested.values():
            yield from leaves_of(item)
    else:
        yield nested


def tensors_in(nested: Nested) -> Iterator[torch.Tensor]:
    """The tensors in it."""
    return (leaf for leaf in leaves_of(nested) if isinstance(leaf, torch.Tensor))


def map_leaves(function: Callable[[Nested], Nested], nested: Nested) -> Nested:
    """The same tuples, lists and dicts with what the function makes of their leaves. (A torch.Size is a leaf.)"""
    kind = type(nested)
    if kind is dict:
        return {key: map_leaves(function, item) for key, item in nested.items()}
    return kind([map_leaves(function, item) for item in nested]) if kind in (tuple, list) else function(nested)


def part_of(nested: Nested, step: int | str) -> Nested:
    """The item at an index, or the attribute of a name."""
    return getattr(nested, step) if isinstance(step, str) else nested[step]


# -- traced values ----------------------------------------------------------------------------------------------------


def is_sequence(value: Value) -> bool:
    """Whether it is a traced list or tuple."""
    return isinstance(value, (MODELS[list], MODELS[tuple]))


def items_of(space: Space, value: Value) -> list[Value] | None:
    """The items of a traced list or tuple; None for another value."""
    return [item.force() for item in space.unpack(value)] if is_sequence(value) else None


def rebuilt(space: Space, sequence: Value, items: list[Value]) -> Value:
    """A new list or tuple of these items, as the given one is."""
    return space.new_list(items) if sequence.isa(list) else space.new_tuple(items)


def map_values(space: Space, function: Callable[[Value], Value], value: Value) -> Value:
    """New lists and tuples as in a value, with what the function makes of the other values in them."""
    items = items_of(space, value)
    if items is None:
        return function(value)
    return rebuilt(space, value, [map_values(space, function, item) for item in items])


def values_in(space: Space, value: Value) -> Iterator[Value]:
    """The values in traced lists and tuples, however deep."""
    items = items_of(space, value)
    if items is None:
        yield value
    else:
        for item in items:
            yield from values_in(space, item)


def value_of(space: Space, nested: Nested, known: Callable[[Nested], Value | None]) -> Value:
    """The traced value of a host structure, for whose parts `known` may have one."""
    found, kind = known(nested), type(nested)
    if found is not None:
        return found
    if kind is dict:
        return space.new_dict([(space.fresh(key), value_of(space, item, known)) for key, item in nested.items()])
    if kind is list or kind is tuple:
        items = [value_of(space, item, known) for item in nested]
        return space.new_list(items) if kind is list else space.new_tuple(items)
    return space.fresh(nested)
