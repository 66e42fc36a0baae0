"""Recording one call as the program makes it: its arguments lowered, its errors raised in the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch.fake.failure import Failure
from stator.pytorch.tensors.failures import eager_error
from stator.pytorch.tensors.latent import rely_on_all
from stator.pytorch.tensors.lowering import Call, lower_call
from stator.pytorch.tensors.scalars import with_numbers
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.space.space import Space

__all__ = ["record", "record_method"]

#: how operations word that they cannot be run on symbolic sizes at all
_STATIC_ONLY = ("on tensor with symbolic sizes", "expected to contain only concrete integers")


def record(space: Space, call: Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Record a call with these arguments; the program's own errors are raised in it."""
    lower_call(space, call, args, kwargs)
    try:
        return _recorded(space, call)
    except Unsupported as e:
        again = with_numbers(space, call) if isinstance(e.brk, errors.DataDependentValue) else None
        if again is None:
            raise
    return _recorded(space, again)


def _recorded(space: Space, call: Call) -> Value:
    """Record a call that has its arguments."""
    recorder = space.trace.recorder
    try:
        return recorder.record(call)
    except Failure as e:
        failure: Failure | None = e
    except Unsupported as e:
        if isinstance(e.brk, errors.UnsupportedTensorOperation) and any(words in e.brk.why for words in _STATIC_ONLY):
            recorder.shapes.need_numbers(call.operands)
        raise
    # Not while the failure is being handled: it would be the context of the program's own error, and the traceback of
    # each would hold the other, with all frames of the tracer and the program's tensors, until the next collection.
    assert failure is not None
    try:
        if any(words in str(failure.error) for words in _STATIC_ONLY):
            recorder.shapes.need_numbers(call.operands)
        rely_on_all(call.operands)
        raise eager_error(space, call, failure)
    finally:
        failure = None


def record_method(space: Space, name: str, *args: object, **kwargs: object) -> Any:
    """Record a call of the tensor method of this name; arguments that are no values are constants."""
    values = [arg if isinstance(arg, Value) else Constant(arg) for arg in args]
    options = {key: arg if isinstance(arg, Value) else Constant(arg) for key, arg in kwargs.items()}
    return record(space, Call(getattr(torch.Tensor, name), "call_method", name), values, options)
