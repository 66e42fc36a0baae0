"""What a call of `Function.apply` is made of: the class, existing or in the making, and its arguments."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator._core import CodePolicy, set_code_policy
from stator.guards.raw import type_lookup
from stator.models.functions.function import FunctionValue
from stator.pytorch import internals
from stator.pytorch.tensors.tensor import TensorValue
from stator.space import facts
from stator.space.binding import Mismatch
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = [
    *("applied", "inputs_of", "is_foreign", "is_own", "is_set", "leave_alone", "node_class", "refuse_wrapper"),
]

#: flags of code that takes more arguments than it names
_TAKES_MORE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS


def applied(space: Space, args: list[Value]) -> type | None:
    """The class whose `apply` is called; None where the call is for Python."""
    cls = space.known(args[0].force()) if args else None
    return cls if isinstance(cls, type) and not internals.are_transforms_active() else None


def node_class(space: Space, cls: Value) -> Host:
    """The class of the nodes that it puts into autograd's graph."""
    return space.known(space.getattr(cls, internals.BACKWARD_CLASS).force())


def is_own(space: Space, cls: type, method: str) -> bool:
    """Whether the class has the method itself, and not torch's, which refuses."""
    found = space.lookup(cls, method)
    return found is not None and found.host is not type_lookup(torch.autograd.Function, method)


def is_set(space: Space, cls: type, flag: str) -> bool:
    """Whether an attribute of the class is true."""
    found = space.lookup(cls, flag)
    return found is not None and bool(space.known(found.force()))


def leave_alone(space: Space, cls: Value) -> None:
    """Python will call the methods: trace none of them."""
    for name in ("forward", "backward", "setup_context", "jvp", "vmap"):
        code = getattr(space.getattr(cls, name).force(), "code", None)
        if code is not None:
            set_code_policy(code, CodePolicy.RUN_RECURSIVELY)


def inputs_of(space: Space, cls: Host, args: list[Value], kwargs: dict[str, Value]) -> list[Value] | None:
    """The arguments of a `forward` that gets no context, with its defaults; None where they are for Python to find."""
    if space.trace.classes.is_fresh(cls):
        return _inputs_of_made(space, space.getattr(space.class_value(cls), "forward").force(), args, kwargs)
    bound = inspect.signature(cls.forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return None if bound.kwargs else [v.force() if isinstance(v, Value) else space.fresh(v) for v in bound.args]


def _inputs_of_made(space: Space, forward: Value, args: list[Value], kwargs: dict[str, Value]) -> list[Value] | None:
    if not isinstance(forward, FunctionValue) or forward.code.co_flags & _TAKES_MORE or forward.code.co_kwonlyargcount:
        return None
    try:
        bound = forward.bind(space, args, kwargs)
    except Mismatch:
        return None
    return [bound[name].force() for name in forward.code.co_varnames[: forward.code.co_argcount]]


def is_foreign(value: Value) -> bool:
    """Whether it is a tensor that no graph has."""
    return value.isa(torch.Tensor) and not isinstance(value, TensorValue)


def refuse_wrapper(space: Space, value: Value) -> None:
    """A tensor of a class with `__torch_dispatch__` may want gradients, of which the trace has no part."""
    if is_foreign(value) and not facts.holds(space, value, _wants_none, "wants no gradient"):
        raise Unsupported(errors.UnsupportedTensorSubclass(value.cls.__qualname__, "a Function is given one"))


def _wants_none(tensor: Host) -> bool:
    return not internals.TensorBase.requires_grad.__get__(tensor)
