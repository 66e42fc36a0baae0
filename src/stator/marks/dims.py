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
    """The size of this dimension of `t` varies: it is symbolic from the first trace on.

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
    ranges = {old for old in getattr(t, "_dynamo_dynamic_range", ()) if old.dim not in dims}
    t._dynamo_dynamic_range = ranges | {DimRange(d, min, max) for d in dims}


def mark_static(t: Any, dim: int | Iterable[int] | None = None) -> None:
    """The size of this dimension of `t` (None: of all) is a constant, even once it has been seen to vary."""
    _add(t, "_dynamo_static_indices", range(len(t.shape)) if dim is None else _dims(t, dim))


def mark_unbacked(t: Any, dim: int | Iterable[int]) -> None:
    """As `mark_dynamic`, and no code may be specialised on the size it has now."""
    dims = _dims(t, dim)
    _add(t, "_dynamo_unbacked_indices", dims)
    _add(t, "_dynamo_dynamic_indices", dims)
