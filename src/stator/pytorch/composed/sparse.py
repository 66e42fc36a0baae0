"""Existing sparse tensors as the dense tensors that they are made of, which are inputs of the graph.

    def f(s, x):
        return s.values() * 2, s @ x      # the values of `s` are an input; for a product, its indices as well

How many elements there are is a size like any other then, where the fake tensor of `s` has none.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.guards.source import CallSource
from stator.pytorch import internals
from stator.pytorch.fake.metadata import is_symbol
from stator.pytorch.tensors.calls import method_handler
from stator.pytorch.tensors.recording import record_function
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import Handler, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.interfaces import Trace
    from stator.space.space import Space

__all__ = ["composition", "install"]

_Base: Any = internals.TensorBase
_OF_COALESCED = ("values", "indices")
_OF_ANY = ("_values", "_indices", "crow_indices", "col_indices", "ccol_indices", "row_indices")
#: by layout: the parts that say where the elements are, those that are compressed first, and the elements
_PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
}


class _Parts:
    """How often each trace has asked for a part: each time it is given another tensor object."""

    def __init__(self, trace: Trace) -> None:
        self.asked = 0


@functools.cache
def _reader(name: str, ordinal: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """What reads a part. It is no view of the sparse tensor, which backends would want to make it of."""

    def read(tensor: torch.Tensor) -> torch.Tensor:
        part: torch.Tensor = getattr(tensor, name)()
        return part.data

    return read


def part(space: Space, tensor: TensorValue, name: str) -> Value | None:
    """The part of this name; None where the tensor is not as it was before the trace, or autograd looks on."""
    if tensor.source is None or tensor.host is None or tensor.meta is not None or not _is_untouched(tensor):
        return None
    host = tensor.host
    if host.layout is torch.strided or host.is_nested or host.requires_grad or not _has(host, name):
        return None
    parts = space.trace.extension(_Parts)
    parts.asked += 1
    read = _reader(name, parts.asked)
    return space.wrap(read(host), CallSource(read, tensor.source, name)).force()


def _has(host: torch.Tensor, name: str) -> bool:
    if host.layout is torch.sparse_coo:
        return name in ("_values", "_indices") or (name in _OF_COALESCED and host.is_coalesced())
    return name == "values" or name in _PARTS.get(host.layout, ())


def _is_untouched(tensor: TensorValue) -> bool:
    recorder = tensor.recorder
    return tensor.root not in recorder.effects.rewritten and tensor not in recorder.tracked.rebound


def _only(args: list[Value], kwargs: dict[str, Value]) -> TensorValue | None:
    """The tensor that is the one argument."""
    tensor = args[0].force() if len(args) == 1 and not kwargs else None
    return tensor if isinstance(tensor, TensorValue) else None


def _asked(name: str) -> Handler:
    function = getattr(_Base, name)
    otherwise = method_handler(function, name)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        tensor = _only(args, kwargs)
        found = None if tensor is None else part(space, tensor, name)
        return otherwise(space, args, kwargs) if found is None else found

    return handler


def _is_known(tensor: TensorValue) -> bool:
    """Whether the fake tensor says truly if elements are in order, each place once.

    It has no elements, which torch takes to be in order. So do the results of all operations on it, where the real ones
    (of `t`, `cat`, `index_select`) are not.
    """
    if tensor.fake.layout is not torch.sparse_coo or (tensor.host is not None and _is_untouched(tensor)):
        return True
    return tensor.operation is not None and tensor.operation.function in _ORDERING


def _coalesced(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`s.coalesce()`, which is `s` itself where that is coalesced."""
    tensor = _only(args, kwargs)
    if tensor is None or _is_known(tensor) or not tensor.fake.is_coalesced():
        return _coalesce(space, args, kwargs)
    tensor.recorder.tracked.in_order = True  # AOTAutograd would leave it out
    with internals.disable_current_modes():
        internals.mark_coalesced(tensor.fake, False)
        try:
            return _coalesce(space, args, kwargs)
        finally:
            internals.mark_coalesced(tensor.fake, True)


def _is_coalesced(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`s.is_coalesced()`."""
    tensor = _only(args, kwargs)
    if tensor is not None and not _is_known(tensor):
        why = "only the operation that makes the tensor tells when it runs"
        raise Unsupported(errors.UnsupportedTensorOperation("Tensor.is_coalesced", why))
    return _tells_coalesced(space, args, kwargs)


class Sparse:
    """An existing sparse matrix, as an operand."""

    def __init__(self, tensor: TensorValue) -> None:
        self.tensor = tensor

    def perform(self, space: Space, function: Function, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """What the operation gives; None for one without a model."""
        model = _MODELS.get(function)
        values = [arg.force() for arg in args]
        if model is None or kwargs or not values or values[0] is not self.tensor:
            return None
        found: Value | None = model(space, values)
        return found


def composition(tensor: TensorValue) -> Sparse | None:
    """What says what operations on an existing tensor are, if it is such a matrix."""
    if tensor.source is None or tensor.host is None:
        return None
    host = tensor.host
    plain = host.layout in _PARTS and host.dim() == 2 and not host.dense_dim()
    return Sparse(tensor) if plain else None


def _dense(space: Space, args: list[Value]) -> Value | None:
    """`s.to_dense()`."""
    return _recorded(space, dense, args) if len(args) == 1 else None


def _product(space: Space, args: list[Value]) -> Value | None:
    """`s @ x`, of a matrix or a vector."""
    tensor: Any = args[0]
    other = args[1] if len(args) == 2 else None
    if not isinstance(other, TensorValue) or other.meta is None or len(other.shape) not in (1, 2):
        return None
    fits = other.dtype is tensor.host.dtype and other.shape[0] == tensor.host.shape[1]
    return _recorded(space, product, args) if fits else None


def _recorded(space: Space, function: Function, args: list[Value]) -> Value | None:
    tensor: Any = args[0]
    layout = tensor.host.layout
    if any(map(is_symbol, tensor.shape)):
        return None
    parts: list[Any] = [part(space, tensor, name) for name in _PARTS[layout]]
    if None in parts:
        return None
    places = space.new_tuple(parts[:-1])
    shape, by_row = space.fresh(tuple(tensor.host.shape)), layout is not torch.sparse_csc
    return record_function(space, function, places, parts[-1], shape, by_row, *args[1:])


def _rows_and_columns(places: tuple[torch.Tensor, ...], number: int, by_row: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Those of the elements, of which there are so many."""
    if len(places) == 1:
        return places[0][0], places[0][1]
    bounds, others = places
    lines = torch.arange(bounds.shape[0] - 1, device=bounds.device)
    lines = torch.repeat_interleave(lines, bounds.diff().long(), output_size=number)
    return (lines, others.long()) if by_row else (others.long(), lines)


def dense(places: tuple[torch.Tensor, ...], values: torch.Tensor, shape: tuple[int, ...], by_row: bool) -> torch.Tensor:
    """The dense matrix."""
    return values.new_zeros(shape).index_put(
        _rows_and_columns(places, values.shape[0], by_row), values, accumulate=True
    )


def product(
    places: tuple[torch.Tensor, ...], values: torch.Tensor, shape: tuple[int, ...], by_row: bool, other: torch.Tensor
) -> torch.Tensor:
    """The matrix times a dense one, or a vector."""
    rows, columns = _rows_and_columns(places, values.shape[0], by_row)
    factors = values if other.dim() == 1 else values[:, None]
    return other.new_zeros((shape[0], *other.shape[1:])).index_add(0, rows, factors * other[columns])


_coalesce = method_handler(_Base.coalesce, "coalesce")
_tells_coalesced = method_handler(_Base.is_coalesced, "is_coalesced")
#: operations whose results are coalesced
_ORDERING = frozenset({_Base.coalesce, _Base.to_sparse, torch.Tensor.to_sparse_coo})

_MODELS: dict[Function, Any] = {
    _Base.to_dense: _dense,
    **dict.fromkeys((_Base.__matmul__, _Base.matmul, _Base.mm, _Base.mv, torch.matmul, torch.mm, torch.mv), _product),
    torch.sparse.mm: _product,
}


def install() -> None:
    """Register the models."""
    for name in (*_OF_COALESCED, *_OF_ANY):
        register(getattr(_Base, name), _asked(name))
    register(_Base.coalesce, _coalesced)
    register(_Base.is_coalesced, _is_coalesced)
