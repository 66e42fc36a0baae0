"""Calls of torch functions and tensor methods: which are operations of the graph, and how they are recorded."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.higher_order.leaf import handler_of as leaf_handler
from stator.pytorch.shapes import functions, symbols
from stator.pytorch.state.global_state import SETTERS
from stator.pytorch.tensors import tables
from stator.pytorch.tensors.lowering import Call
from stator.pytorch.tensors.recording import record
from stator.pytorch.tensors.subclass import dispatched, heeding_modes
from stator.space.protocol import Handler
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space

__all__ = ["call_hook", "function_handler", "importable", "intercept", "method_handler"]

_known: dict[int, Handler] = {}
_kept: list[Host] = []


def call_hook(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """Answer for the C callables of torch (see protocol.CALL_HOOKS)."""
    key = id(host)
    handler = _known.get(key)
    if handler is None:
        handler = symbol_models().get(key) or classify(host)
        if handler is None:
            return None  # nothing is remembered of a class of the program's: it may come and go
        _known[key] = handler
        _kept.append(host)
    return handler(space, args, kwargs)


@functools.cache
def symbol_models() -> dict[int, Handler]:
    """The models of the methods of numbers, for those that are symbols."""
    return functions.methods_of_numbers()


def classify(host: Host) -> Handler | None:
    """How a C callable is handled; None: it is not torch's, or nothing is known about it."""
    if issubclass(type(host), type):
        return None
    owner = getattr(host, "__objclass__", None)
    if owner is internals.TensorBase or owner is torch.Tensor:
        return method_handler(host, host.__name__)
    if isinstance(host, types.BuiltinFunctionType):
        if id(host) in SETTERS:
            return heeding_modes(host, _state_handler(host))
        if id(host) in tables.operator_ids():
            return function_handler(host)
    return None


def intercept(host: Host) -> Handler | None:
    """How a Python function is handled that is not to be traced into; None: trace into it (protocol.INTERCEPTS)."""
    module = getattr(host, "__module__", None)
    name = getattr(host, "__qualname__", "")
    leaf = leaf_handler(host)
    if leaf is not None:  # which torch counts among those that it allows
        return leaf
    if "_stator_allow_in_graph" in host.__dict__ or _allowed_by_torch(host):
        return function_handler(host)
    model = functions.model_of(host)
    if model is not None:
        return model
    if module == "torch._tensor" and name.startswith("Tensor."):
        return _tensor_function(host, name[7:])
    if host in tables.tensor_functions():
        return _tensor_function(host, tables.tensor_functions()[host])
    if module in tables.OPERATION_MODULES and name.isidentifier() and name[0] != "_" and name not in tables.TRACED:
        return function_handler(host)
    return None


def _allowed_by_torch(host: Host) -> bool:
    """Marked by `torch.compiler.allow_in_graph`: torch._dynamo keeps the list, and is there if anyone has used it.

    Those marked by `nonstrict_trace` are in it too, and are traced: what they capture has gradients.
    """
    rules = sys.modules.get("torch._dynamo.trace_rules")
    return rules is not None and rules.is_callable_allowed(host) and not rules.is_nonstrict_trace_callable(host)


def _tensor_function(host: Host, name: str) -> Handler | None:
    """A method of Tensor that is written in Python."""
    if name in tables.BINARY or name in tables.PYTHON_METHODS:
        return method_handler(host, name)
    if name in tables.REFUSED:
        return _refusal(host, name)
    return None


def function_handler(host: Host) -> Callable[[Space, list[Value], dict[str, Value]], Value]:
    """A function that becomes a `call_function` node."""
    target = importable(host)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        result = dispatched(space, host, args, kwargs)
        return record(space, Call(host, "call_function", target), args, kwargs) if result is None else result

    return handler


def importable(host: Host) -> Any:
    """The function; or the operator of its name, where that names another function, or none, in torch."""
    name = getattr(host, "__name__", "")
    if getattr(internals.VariableFunctions, name, None) is host and getattr(torch, name, None) is not host:
        return getattr(torch.ops.aten, name, host)
    return host


def method_handler(host: Host, name: str) -> Handler:
    """A tensor method, recorded as the operator or method call that the program wrote."""
    if name in tables.REFUSED:
        return _refusal(host, name)
    kind, swap = "call_method", False
    target: Function | str = name
    if name in tables.BINARY:
        kind, (target, swap) = "call_function", tables.BINARY[name]

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        overridden = dispatched(space, host, args, kwargs)
        if overridden is not None:
            return overridden
        call = Call(host, kind, target, swap)
        result = record(space, call, args, kwargs)
        if call.composed is None and name not in tables.METADATA and not _is_expected(result):
            raise Unsupported(errors.UnsupportedTensorOperation(describe_callable(host), "it gives no tensor"))
        return result

    return handler


def _is_expected(result: Value) -> bool:
    """Whether a method that computes gave tensors (or nothing): its answer is then not about data or memory."""
    return not result.constant or result.host is None or result.host is NotImplemented


def _refusal(host: Host, name: str) -> Handler:
    make = tables.REFUSED[name]

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tensor: Any = args[0].force() if args else None
        if getattr(tensor, "composed", False):
            return tensor.perform(space, host, args, kwargs)
        raise Unsupported(make(describe_callable(host)))

    return handler


def _state_handler(host: Host) -> Handler:
    """A function that changes the global state: done now for real, and recorded."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if any(value.force().symbolic for value in (*args, *kwargs.values())):  # a mode that a size decides on
            return symbols.specialise(space, host, args, kwargs)
        hosts = [space.known(a.force()) for a in args]
        named = {k: space.known(v.force()) for k, v in kwargs.items()}
        return space.fresh(space.trace.recorder.state.change(host, hosts, named))

    return handler
