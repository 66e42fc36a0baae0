"""Errors of the traced program's tensor operations, with the class and the words that eager execution gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch.fake.failure import Failure, describe_callable, first_line
from stator.pytorch.fake.metadata import TensorMeta
from stator.pytorch.fake.operator_facts import of_library
from stator.pytorch.fake.quiet import warnings_of_torch
from stator.pytorch.shapes.words import symbols_in_words
from stator.pytorch.tensors.lowering import Call, fill
from stator.pytorch.tensors.tables import INPLACE
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.value import Raised, Unsupported
from stator.space.warning_trap import left_to_run_time

if TYPE_CHECKING:
    from stator.space.space import Space

__all__ = ["eager_error", "real_warnings"]

_MOST_BYTES = 1 << 26


def eager_error(space: Space, call: Call, failure: Failure) -> Exception:
    """The exception that the operation raises when it is run for real on tensors of the same metadata.

    Fake tensors word some errors differently. Where reality cannot be asked, or does not agree, the graph breaks and
    the program raises its own exception.
    """
    name = describe_callable(call.function)
    left_to_run_time(space, failure.warned, name)
    why = symbols_in_words(space.trace.recorder, first_line(failure.error))
    refusal = Unsupported(errors.UnsupportedTensorOperation(name, why))
    if not _can_be_asked(call):
        return refusal
    if _writes(call) and any(meta.is_view for meta in call.metas if isinstance(meta, TensorMeta)):
        return refusal  # whether autograd lets it depends on how the view was made
    roots = [id(tensor.root) for tensor in tensors_among(call.operands)]
    if len(set(roots)) < len(roots):
        return refusal  # they share memory, which eager looks at first
    asked = [_ask(call, filling) for filling in (0, 1, 3)]
    error = asked[0]
    # An error that depends on the contents is not the one that the fake tensors raised.
    if error is None or type(error) is not type(failure.error) or len({str(e) for e in asked}) != 1:
        return refusal
    return Raised(space.exception(error))


def _can_be_asked(call: Call) -> bool:
    """Whether the operation can be run for real on tensors of the same metadata.

    Not one of another library: it may print, count, or wait for other processes.
    """
    if of_library(call.function):
        return False
    if any(meta is None or meta.symbolic or meta.device.type != "cpu" for meta in call.metas):
        return False
    if not call.exact or len(call.metas) != len(call.operands):
        return False
    return sum(_bytes(meta) for meta in call.metas) <= _MOST_BYTES


def real_warnings(call: Call, warned: tuple[type, ...]) -> tuple[type, ...]:
    """What an operation warns about, of which fakes have warned: a fallback of theirs may have."""
    if not _can_be_asked(call):
        return warned
    found: set[type] = set()
    for filling in (0, 1, 3):
        _ask(call, filling, found)
    return tuple(found)


def _writes(call: Call) -> bool:
    name = str(getattr(call.function, "__name__", ""))
    return name in INPLACE or (name.endswith("_") and not name.endswith("__"))


def _bytes(meta: TensorMeta) -> int:
    span = 1 + sum(max(n - 1, 0) * s for n, s in zip(meta.shape, meta.stride, strict=True)) + meta.offset
    return int(span * meta.dtype.itemsize)


def _ask(call: Call, filling: int, warned: set[type] | None = None) -> Exception | None:
    state = torch.get_rng_state()
    try:
        tensors = [_real(meta, value.cls, filling) for meta, value in zip(call.metas, call.operands, strict=True)]
        with warnings_of_torch(set() if warned is None else warned):
            call.function(*fill(call.args, tensors), **fill(call.kwargs, tensors))
    except Exception as error:
        return error.with_traceback(None)
    finally:
        torch.set_rng_state(state)
    return None


def _real(meta: TensorMeta, cls: type, filling: int) -> torch.Tensor:
    with torch.no_grad():
        span = _bytes(meta) // meta.dtype.itemsize
        memory = torch.full((span,), filling, dtype=meta.dtype)
        tensor = memory.as_strided(meta.shape, meta.stride, meta.offset).detach()
    if meta.requires_grad and meta.is_leaf:
        tensor.requires_grad_()
    if cls is torch.nn.Parameter:
        return torch.nn.Parameter(tensor.detach(), requires_grad=meta.requires_grad)
    if meta.requires_grad and not meta.is_leaf:
        return tensor.requires_grad_().clone()
    return tensor
