"""NumPy's arrays and scalars: traced as tensors in the same memory, their functions as operations of the graph."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch

from stator import errors
from stator.interp.branches import BRANCH_HOOKS
from stator.pytorch.numpy import array_calls, scalar_operands
from stator.pytorch.numpy.array_calls import name_of, refusal
from stator.pytorch.numpy.array_value import FIELDS, SCALARS, ArrayValue
from stator.pytorch.numpy.function_call import astype, call, mind_errors
from stator.pytorch.tensors.checks import branch
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.scalars import known_as, scalar
from stator.space.protocol import (
    AMBIENT,
    CALL_HOOKS,
    IMMUTABLE,
    INTERCEPTS,
    MODELS,
    NOT_IMPLEMENTED,
    REALISERS,
    pure,
    register,
)
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.pytorch.types import Host
    from stator.space.interfaces import Frame
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["install"]


def _viewed(name: str) -> Callable[[Space, ArrayValue], Value]:
    """An attribute that is a view of the array."""
    return lambda space, array: call(space, getattr(array.cls, name).__get__, f"ndarray.{name}", [array], {})


# -- numbers ----------------------------------------------------------------------------------------------------------

_NUMBERS: dict[str, type] = {"item": object, "__int__": int, "__index__": int, "__float__": float}


def _number(space: Space, array: ArrayValue, name: str) -> Value:
    """`array.item()` and its like, of an array without dimensions."""
    kind = _NUMBERS[name]
    if len(array.tensor.shape) or (name == "__index__" and array.tensor.dtype.is_floating_point):
        raise refusal(f"ndarray.{name}", "it has dimensions, or is no integer")
    found = scalar(space, array.tensor, kind)
    if found is None:
        raise Unsupported(errors.DataDependentValue(f"numpy.ndarray.{name}"))
    return found


def _formatted(space: Space, scalar: ArrayValue, spec: Value) -> Value:
    """`f"{mean:.3f}"`: NumPy formats Python's own number in its place."""
    if scalar.tensor.dtype.is_complex or scalar.tensor.dtype is torch.bool:
        raise refusal("generic.__format__", "of a condition or a complex number")
    method = "__float__" if scalar.tensor.dtype.is_floating_point else "__int__"
    return space.call_builtin(format, [_number(space, scalar, method), spec], {})


def _len(space: Space, array: ArrayValue) -> Value:
    if not len(array.tensor.shape):
        raise space.error(TypeError, "len() of unsized object")
    return space.getitem(FIELDS["shape"](space, array), Constant(0))


def _tolist(space: Space, array: ArrayValue) -> Value:
    return space.call_builtin(torch.Tensor.tolist, [record_method(space, "detach", array.tensor)], {})


def _truth(space: Space, array: ArrayValue) -> Value:
    known = None if len(array.tensor.shape) else known_as(space, bool, array.tensor, True)
    if known is None:
        raise Unsupported(errors.DataDependentBranch())
    return known


def _branch(frame: Frame, value: Value, when_true: int, when_false: int) -> bool | errors.Break | None:
    """Decide a branch on a scalar if one side of it raises (see branches.BRANCH_HOOKS)."""
    if not isinstance(value, ArrayValue) or len(value.tensor.shape):
        return None
    return branch(frame, value.tensor, when_true, when_false)


def _method(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A method of arrays or scalars (see protocol.CALL_HOOKS)."""
    if not args or not array_calls.is_method(host):
        return None
    self, name = args[0].force(), host.__name__
    if isinstance(self, ArrayValue) and name == "__format__" and len(args) == 2 and issubclass(self.cls, np.generic):
        return _formatted(space, self, args[1])
    if isinstance(self, ArrayValue) and len(args) == 1 and not kwargs:
        if name in _NUMBERS:
            return _number(space, self, name)
        if name == "__len__":
            return _len(space, self)
        if name == "__iter__" and len(self.tensor.shape):
            return space.iter(space.new_tuple(self.unpack(space)))
        if name == "tolist":
            return _tolist(space, self)
        if name == "__bool__":
            return _truth(space, self)
    if scalar_operands.leaves_to_tensor(name, args):
        return NOT_IMPLEMENTED
    known = name_of(host)
    if known is None or not any(isinstance(arg.force(), ArrayValue) for arg in args):
        return None
    return call(space, host, known, args, kwargs)


# -- functions --------------------------------------------------------------------------------------------------------


def _called(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A universal function, or one that arrays can override, is called."""
    return _function(space, args[0].force().identity(space), args[1:], kwargs)


def _function(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    name = name_of(host)
    if name is None:
        return None
    return call(space, host, name, args, kwargs)


def _builtin_function(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A function written in C (see protocol.CALL_HOOKS)."""
    if type(host) is not types.BuiltinFunctionType or not array_calls.is_function(host):
        return None
    return _function(space, host, args, kwargs)


def _handler(host: Host) -> Handler:
    return lambda space, args, kwargs: _function(space, host, args, kwargs)


def _intercept(host: Host) -> Handler | None:
    """Python functions of NumPy's (see protocol.INTERCEPTS)."""
    return _handler(host) if array_calls.is_function(host) else None


def _constructor(cls: Host) -> Handler:
    """`numpy.float32(value)`."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        value = args[0].force() if len(args) == 1 and not kwargs else None
        if not isinstance(value, ArrayValue) or len(value.tensor.shape):
            return None
        return astype(space, value, space.existing(cls))

    return handler


def install() -> None:
    """Register the models."""
    MODELS[np.ndarray] = ArrayValue
    FIELDS.update({name: _viewed(name) for name in ("T", "real", "imag")})
    scalar_operands.install()
    IMMUTABLE.update(SCALARS, {np.dtype}, {type(np.dtype(cls)) for cls in SCALARS})
    for cls in SCALARS:
        REALISERS[cls] = _scalar
        AMBIENT[cls] = mind_errors
        register(cls, _constructor(cls))
    pure(np.generic.__format__)
    for kind in (np.ufunc, type(np.sum)):
        register(kind.__call__, _called)
    CALL_HOOKS[:0] = [_method, _builtin_function]
    INTERCEPTS.append(_intercept)
    BRANCH_HOOKS.append(_branch)


def _scalar(space: Space, host: Host, source: Source) -> Value:
    """An existing scalar: a tensor that is read at every call."""
    return Constant(host, source) if source.is_constant else ArrayValue.from_host(space, host, source)
