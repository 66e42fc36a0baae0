"""Marks on tensors: which dimensions vary. They are attributes, the same that `torch._dynamo`'s marks set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class DimRange(NamedTuple):
    """The sizes that a dimension takes, as torch's readers of the mark expect it."""

    dim: int
    min: int | None
    max: int | None


def _dims(tensor: Any, dim: int | Iterable[int]) -> list[int]:
    dims = [dim] if isinstance(dim, int) else list(dim)
    rank = len(tensor.shape)
    for d in dims:
        if not -rank <= d < rank:
            raise IndexError(f"dimension {d} is out of range for a tensor with {rank} dimensions")
    return [d % rank for d in dims]


def _add(tensor: Any, attribute: str, dims: Iterable[int]) -> None:
    marked = getattr(tensor, attribute, None)
    if marked is None:
        marked = set()
        setattr(tensor, attribute, marked)
    marked.update(dims)


def mark_dynamic(t: Any, dim: int | Iterable[int], *, min: int | None = None, max: int | None = None) -> None:
    """The size of this dimension of `t` varies: it is symbolic from the first trace on, and stays so.

    Code that makes it a number, or is not for all sizes from `min` to `max`, raises ConstraintViolationError when it is
    compiled.

    Args:
        t: a tensor.
        dim: a dimension, or several.
        min: least size it takes.
        max: greatest size it takes.

    Raises:
        IndexError: no such dimension.
    """
    dims = _dims(t, dim)
    _add(t, "_dynamo_dynamic_indices", dims)
    getattr(t, "_dynamo_weak_dynamic_indices", set()).difference_update(dims)
    _set_range(t, dims, min, max)


def maybe_mark_dynamic(t: Any, dim: int | Iterable[int], *, min: int | None = None, max: int | None = None) -> None:
    """As `mark_dynamic`, but a hint: code may make the size a number, or narrow its range.

    A dimension that `mark_dynamic` has marked is left as it is.
    """
    dims = [d for d in _dims(t, dim) if d not in getattr(t, "_dynamo_dynamic_indices", ())]
    _add(t, "_dynamo_weak_dynamic_indices", dims)
    _set_range(t, dims, min, max)


def _set_range(t: Any, dims: list[int], min: int | None, max: int | None) -> None:
    """Dimensions of which nothing is said have no range, and a tensor without ranges not the attribute either."""
    ranges = {old for old in getattr(t, "_dynamo_dynamic_range", ()) if old.dim not in dims}
    if (min, max) != (None, None):
        ranges |= {DimRange(d, min, max) for d in dims}
    if ranges:
        t._dynamo_dynamic_range = ranges
    elif hasattr(t, "_dynamo_dynamic_range"):
        del t._dynamo_dynamic_range


def mark_static(t: Any, dim: int | Iterable[int] | None = None) -> None:
    """The size of this dimension of `t` (None: of all) is a constant, even once it has been seen to vary."""
    _add(t, "_dynamo_static_indices", range(len(t.shape)) if dim is None else _dims(t, dim))


def mark_unbacked(t: Any, dim: int | Iterable[int]) -> None:
    """The size of this dimension of `t` is taken to be unknown, as what is in a tensor is: a branch on it breaks."""
    _add(t, "_dynamo_unbacked_indices", _dims(t, dim))
