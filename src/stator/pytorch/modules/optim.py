"""What keeps optimizers out of a graph: functions torch has marked for Dynamo's sake, and tensors given as scalars."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.optim

from stator import errors
from stator.pytorch.nesting import is_sequence, items_of
from stator.pytorch.state.disabling import WRAPPER
from stator.pytorch.tensors.calls import function_handler, method_handler
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import INTERCEPTS, NONE, Handler, TailCall, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space


#: the reasons given by what torch.compile, once used in the process, puts in the place of optimizers' own functions
_PATCHED = ("optimizer <class 'torch.optim.", "don't trace into fused optimizer")


def _intercept(host: Host) -> Handler | None:
    """torch's own marks for Dynamo: what it cannot trace, Stator may; breaks in user code are wanted."""
    if host.__code__ is WRAPPER:
        return lambda space, args, kwargs: TailCall(_spared(space, host), args, kwargs)
    if str(host.__dict__.get("_torchdynamo_disable_msg")).startswith(_PATCHED):
        return lambda space, args, kwargs: TailCall(space.existing(host._torchdynamo_orig_callable), args, kwargs)
    if host.__module__ == "torch._dynamo.decorators" and host.__name__ == "graph_break":
        return _graph_break
    return None


def _spared(space: Space, wrapper: Function) -> Value:
    """What the wrapper calls. Its `__wrapped__` may be another: `functools.wraps` sets it anew."""
    host: Host = space.existing(wrapper)
    cells = host.cells(space)
    function: Value = cells[WRAPPER.co_freevars.index("fn")].contents
    return function


def _graph_break(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch._dynamo.graph_break()`."""
    if str(space.trace.frame.globals.get("__name__")).startswith("torch."):
        return NONE
    message = kwargs.get("msg", args[0] if args else NONE)
    raise Unsupported(errors.ExplicitBreak(str(space.known(message) or "no message")))


# -- tensors as scalars -----------------------------------------------------------------------------------------------

#: `self + value * a / b`, `self + value * a * b`: what is done to the product of the first two
_LAST: dict[str, Function] = {"addcdiv": torch.Tensor.div, "addcmul": torch.Tensor.mul}
#: data types in which the kernel computes step by step
_EXACT = (torch.float32, torch.float64)


def _scaled(host: Host, name: str, otherwise: Handler) -> Handler:
    """`addcdiv` and its like, with a tensor or symbol as `value`: the kernel's arithmetic, as operations."""
    last = _LAST[name]
    add = torch.Tensor.add_ if host.__name__.endswith("_") else torch.Tensor.add

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        scale = kwargs.get("value", NONE).force()
        symbolic = scale.symbolic and not space.trace.recorder.keeps_order
        if not (symbolic or (isinstance(scale, TensorValue) and not len(scale.shape))) or len(args) != 3:
            return otherwise(space, args, kwargs)
        operands = [arg.force() for arg in args]
        tensors = operands if symbolic else [*operands, scale]
        if not all(isinstance(t, TensorValue) and t.dtype in _EXACT for t in tensors):
            return otherwise(space, args, kwargs)
        product = space.binary("*", operands[1], scale)
        quotient = space.call_builtin(last, [product, operands[2]], {})
        return space.call_builtin(add, [operands[0], quotient], {})

    return handler


def _multiplied(host: Host, otherwise: Handler) -> Handler:
    """`a.add_(b, alpha=number)` with a number that is a symbol: backends make tensors of the factors of products."""
    plain = getattr(torch.Tensor, host.__name__)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        alpha = kwargs.get("alpha", NONE).force()
        operands = [arg.force() for arg in args]
        if not alpha.symbolic or len(args) != 2 or len(kwargs) != 1 or space.trace.recorder.keeps_order:
            return otherwise(space, args, kwargs)
        if not all(isinstance(t, TensorValue) and t.dtype.is_floating_point for t in operands):
            return otherwise(space, args, kwargs)
        product = space.binary("*", operands[1], alpha)
        return space.call_builtin(plain, [operands[0], product], {})

    return handler


#: functions on lists of tensors that are given scalars
_LISTS = tuple(
    f"{name}{end}" for name in ("add", "sub", "mul", "div", "addcdiv", "addcmul", "lerp") for end in ("", "_")
)


def _one_by_one(name: str, otherwise: Handler) -> Handler:
    """`_foreach_addcdiv_` and its like, with scalars that are symbols, or in a tensor: operations on each tensor."""
    method = getattr(torch.Tensor, name)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        given = [arg.force() for arg in args]
        lists = [value for value in given if is_sequence(value)]
        scalars = [value for value in given if not is_sequence(value)]
        if name.startswith("addc") and _are_tensors(space, lists[3:]) and not kwargs:
            scalars = [lists.pop()]
        in_tensor = name.startswith("addc") and bool(scalars) and not kwargs and _are_scalars(space, scalars[0])
        if (
            not (in_tensor or _are_symbols(space, [*scalars, *kwargs.values()]))
            or len({len(space.unpack(each)) for each in lists}) != 1
        ):
            return otherwise(space, args, kwargs)
        each_scalar = iter(space.unpack(scalars[0]) if in_tensor else ())
        results = []
        for parts in zip(*map(space.unpack, lists), strict=True):
            options = {**kwargs, "value": next(each_scalar)} if in_tensor else kwargs
            results.append(space.call_builtin(method, [*parts, *(() if in_tensor else scalars)], options))
        return NONE if name.endswith("_") else space.new_list(results)

    return handler


def _are_scalars(space: Space, scalars: Value) -> bool:
    """Whether it is a tensor of scalars, or a list of such; fake tensors are taken for neither."""
    return (isinstance(scalars, TensorValue) and len(scalars.shape) == 1) or _are_tensors(space, [scalars])


def _are_tensors(space: Space, lists: list[Value]) -> bool:
    """Whether there is one list, of tensors without dimensions."""
    items = items_of(space, lists[0]) if len(lists) == 1 else None
    return bool(items) and all(isinstance(item, TensorValue) and not len(item.shape) for item in items or ())


def _are_symbols(space: Space, scalars: list[Value]) -> bool:
    """Backends make numbers of symbols that are given with lists."""
    return not space.trace.recorder.keeps_order and any(value.force().symbolic for value in scalars)


def install() -> None:
    """Register the models."""
    INTERCEPTS.insert(0, _intercept)
    for name in _LAST:
        for method in (getattr(torch.Tensor, name), getattr(torch.Tensor, f"{name}_")):
            register(method, _scaled(method, name, method_handler(method, method.__name__)))
        function = getattr(torch, name)
        register(function, _scaled(function, name, function_handler(function)))
    for name in ("add", "add_", "sub", "sub_"):
        for owner, make in ((torch.Tensor, method_handler), (torch, function_handler)):
            host = getattr(owner, name, None)
            if host is not None:
                named = (host, name) if make is method_handler else (host,)
                register(host, _multiplied(host, make(*named)))
    for name in _LISTS:
        host = getattr(torch, f"_foreach_{name}")
        register(host, _one_by_one(name, function_handler(host)))
