"""Recording one call as the program makes it: its arguments lowered, its errors raised in the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch.fake.failure import Failure, describe_callable
from stator.pytorch.nesting import items_of
from stator.pytorch.shapes.number_operands import (
    MAKERS,
    of_python,
    tensor_of_float,
    tensor_of_floats,
    tensor_of_symbols,
    with_conditions,
    with_numbers,
    with_tensors,
)
from stator.pytorch.shapes.unbacked import are_decided
from stator.pytorch.shapes.varying_scalars import filled_with_float, scalars_in_tensors
from stator.pytorch.tensors.failures import eager_error
from stator.pytorch.tensors.known import learn_sizes
from stator.pytorch.tensors.latent import rely_on_all
from stator.pytorch.tensors.lowering import Call, lower_call
from stator.space.value import Constant, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.space import Space

__all__ = ["record", "record_function", "record_method"]

#: how operations word that they cannot be run on symbolic sizes at all
_STATIC_ONLY = ("on tensor with symbolic sizes", "expected to contain only concrete integers")

#: functions all of whose operands are sizes: `torch.zeros(2, batch_sizes[0])`
_OF_SIZES = frozenset({torch.zeros, torch.ones, torch.empty, torch.rand, torch.randn})


def record(space: Space, call: Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Record a call with these arguments; the program's own errors are raised in it."""
    lower_call(space, call, args, kwargs)
    if call.composed is not None:
        answer = call.composed.perform(space, call.function, args, kwargs)
        if answer is not None:
            return answer
    shapes = space.trace.recorder.shapes  # begun where there are symbols
    if call.operands and call.function in _OF_SIZES:
        call = with_numbers(space, call) or call  # a number read elsewhere is the same number here
    elif call.operands and call.function in MAKERS:
        call = tensor_of_float(space, call) or tensor_of_floats(space, call) or tensor_of_symbols(call) or call
    elif shapes.begun:
        call = of_python(space, call) or call
    if shapes.begun:
        call = with_tensors(space, call) or with_conditions(space, call) or call
        call = scalars_in_tensors(space, call) or filled_with_float(space, call) or call
    try:
        return _recorded(space, call)
    except Unsupported as e:
        again = with_numbers(space, call) if _reads_number(e.brk) else None
        if again is None:
            _fix_sizes(space, call, e)
            raise
        refused = e
    try:
        return _recorded(space, again)
    except Unsupported as e:
        _fix_sizes(space, call, refused)
        _fix_sizes(space, again, e)
        raise
    except Raised:  # it takes tensors only, as `torch.equal` does
        raise refused from None


def _fix_sizes(space: Space, call: Call, refused: Unsupported) -> None:
    """Where it is the symbols among its operands that it does not take, have these known from now on."""
    if _is_static_only(refused.brk) or are_decided(call.operands):
        space.trace.recorder.shapes.need_numbers(call.operands)


def _reads_number(brk: errors.Break) -> bool:
    """Whether an operation failed because it has to know a number that is in a tensor."""
    return isinstance(brk, errors.DataDependentValue) or _is_static_only(brk)


def _is_static_only(brk: errors.Break) -> bool:
    """Whether an operation failed because it takes no symbols."""
    return isinstance(brk, errors.UnsupportedTensorOperation) and any(words in brk.why for words in _STATIC_ONLY)


def _recorded(space: Space, call: Call) -> Value:
    """Record a call that has its arguments."""
    recorder = space.trace.recorder
    try:
        result = recorder.record(call)
        if recorder.shapes.begun:
            learn_sizes(recorder, items_of(space, result) or [result])
        return result
    except Failure as e:
        failure: Failure | None = e
    # Not while the failure is being handled: it would be the context of the program's own error, and the traceback of
    # each would hold the other, with all frames of the tracer and the program's tensors, until the next collection.
    assert failure is not None
    try:
        why = next((words for words in _STATIC_ONLY if words in str(failure.error)), None)
        if why is not None:
            raise Unsupported(errors.UnsupportedTensorOperation(describe_callable(call.function), why))
        rely_on_all(call.operands)
        raise eager_error(space, call, failure)
    finally:
        failure = None


def record_method(space: Space, name: str, *args: object, **kwargs: object) -> Any:
    """Record a call of the tensor method of this name; arguments that are no values are constants."""
    return _record_known(space, Call(getattr(torch.Tensor, name), "call_method", name), args, kwargs)


def record_function(space: Space, function: Function, *args: object, **kwargs: object) -> Any:
    """Record a call of a function; arguments that are no values are constants."""
    return _record_known(space, Call(function, "call_function", function), args, kwargs)


def _record_known(space: Space, call: Call, args: tuple[object, ...], kwargs: dict[str, object]) -> Value:
    values = [arg if isinstance(arg, Value) else Constant(arg) for arg in args]
    options = {key: arg if isinstance(arg, Value) else Constant(arg) for key, arg in kwargs.items()}
    return record(space, call, values, options)
