"""Operators that tell whether a condition holds, as torch.distributions asks of its arguments, and assertions.

    assert torch.allclose(x, y)
    if not torch.equal(x, y): raise ValueError

A comparison that gives one of Python's truth values is known where all it does is to decide a branch of which a side is
hardly ever taken (see `checks`), and else when the graph has run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.tensors.calls import function_handler, method_handler
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.scalars import as_number
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import FALSE, Handler, register
from stator.space.value import Constant, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space

__all__ = ["install"]


def _reduction(host: Host, method: Function) -> Handler:
    """`torch._is_all_true(x)` is `x.all()`, which unlike it can be run on fake tensors of symbolic sizes."""
    otherwise = function_handler(host)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) == 1 and not kwargs:
            tensor = args[0].force()
            if isinstance(tensor, TensorValue) and tensor.dtype is torch.bool:
                return space.call_builtin(method, [tensor], {})
        return otherwise(space, args, kwargs)

    return handler


def _asserting(host: Host) -> Handler:
    """An assertion about a tensor: AOTAutograd drops one that has no message."""
    otherwise, told = function_handler(host), function_handler(internals.assert_async_msg)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if len(args) + len(kwargs) == 1 and not space.trace.recorder.keeps_order:
            return told(space, [*args, *kwargs.values(), Constant("the condition does not hold")], {})
        return otherwise(space, args, kwargs)

    return handler


def _comparing(host: Host, otherwise: Handler, condition: Handler) -> Handler:
    """A comparison of two tensors as a whole, of which the graph computes the condition."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        tensors = [arg.force() for arg in args[:2]]
        compares = len(tensors) == 2 and all(map(_is_plain, tensors)) and not space.trace.recorder.state.modes.asked
        found = condition(space, args, kwargs) if compares else None
        if not isinstance(found, TensorValue):
            return otherwise(space, args, kwargs) if found is None else found
        decided = space.trace.assumed(found)
        if decided is not None:
            return Constant(decided)
        return as_number(space, found, object, host) or otherwise(space, args, kwargs)

    return handler


def _is_plain(value: Value) -> bool:
    known = isinstance(value, TensorValue) and value.cls in PLAIN_CLASSES and value.meta is not None
    return known and value.device.type != "meta"  # type: ignore[attr-defined]


def _close(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return record_method(space, "all", space.call_builtin(torch.isclose, args, kwargs))


def _equal(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    one, two = (arg.force() for arg in args)
    assert isinstance(one, TensorValue) and isinstance(two, TensorValue)
    if kwargs or len(args) > 2 or (one.dtype, one.device) != (two.dtype, two.device):
        return None
    shapes = [space.getattr(tensor, "shape") for tensor in (one, two)]
    if not space.truth(space.compare("==", *shapes)):
        return FALSE
    return record_method(space, "all", record_method(space, "eq", one, two))


def _compare_by_elements() -> bool:
    """Whether `torch.equal` compares a tensor with itself by its elements too, of which a NaN equals none."""
    nan = torch.full((1,), math.nan)
    return not torch.equal(nan, nan)


def install() -> None:
    """Register the models."""
    register(internals.is_all_true, _reduction(internals.is_all_true, torch.Tensor.all))
    register(internals.is_any_true, _reduction(internals.is_any_true, torch.Tensor.any))
    for host in (internals.assert_async, internals.assert_async_op, internals.assert_async_op.default):
        register(host, _asserting(host))
    comparisons = {"allclose": _close, **({"equal": _equal} if _compare_by_elements() else {})}
    for name, condition in comparisons.items():
        function, method = getattr(torch, name), getattr(internals.TensorBase, name)
        register(function, _comparing(function, function_handler(function), condition))
        register(method, _comparing(method, method_handler(method, name), condition))
