"""Tensor methods that look at data or act as Python protocols: truth, numbers, length, iteration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.shapes.indices import by_number, item_at, parts_of, set_item_at, with_tensors
from stator.pytorch.tensors.calls import method_handler
from stator.pytorch.tensors.indexing import ScalarIndexing
from stator.pytorch.tensors.recording import record, record_method
from stator.pytorch.tensors.scalars import as_number, is_at_hand, is_integral, known_as, truth_of_sizes
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import LAST_RESORTS, register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = ["install", "unbind"]

_Base: Any = internals.TensorBase


def unbind(space: Space, tensor: TensorValue) -> list[Value]:
    """The slices along the first dimension, as iteration gives them."""
    if tensor.meta is None and tensor.composition is not None:
        return space.unpack(record_method(space, "unbind", tensor, 0))
    if len(tensor.shape) == 0:
        raise space.error(TypeError, "iteration over a 0-d tensor")
    if space.trace.recorder.state.modes.asked:
        space.call(space.getattr(tensor, "dim"), [], {})
        return space.unpack(space.call(space.getattr(tensor, "unbind"), [Constant(0)], {}))
    return space.unpack(record_method(space, "unbind", tensor, 0))


def _iter(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    tensor = args[0].force()
    assert isinstance(tensor, TensorValue)
    return space.iter(space.new_tuple(unbind(space, tensor)))


def _len(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    tensor = args[0].force()
    assert isinstance(tensor, TensorValue)
    if len(tensor.shape) == 0:
        raise space.error(TypeError, "len() of a 0-d tensor")
    return space.getitem(space.getattr(tensor, "shape"), Constant(0))


#: methods that make one number of the contents → the class they convert it to
_NUMBERS: dict[str, type] = {"item": object, "__int__": int, "__index__": int, "__float__": float}


def _data(host: Host, branch: bool) -> Any:
    """A method that makes a Python value of the contents: known for constants, a symbol, or a break."""
    kind = _NUMBERS.get(host.__name__)

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tensor = args[0].force()
        if host is _Base.__index__ and isinstance(tensor, TensorValue) and not is_integral(tensor.dtype):
            raise space.error(TypeError, "only integer tensors of a single element can be converted to an index")
        found = None
        if len(args) == 1 and not kwargs:
            found = known_as(space, host, tensor, branch)
            if found is None and kind is not None and isinstance(tensor, TensorValue):
                found = as_number(space, tensor, kind, host)
            if found is None and branch and isinstance(tensor, TensorValue):
                found = truth_of_sizes(space, tensor)
        if found is not None:
            return found
        name = describe_callable(host)
        raise Unsupported(errors.DataDependentBranch() if branch else errors.DataDependentValue(name))

    return handler


def _tolist(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`tensor.tolist()`: a list of numbers that are known when the graph runs, if there are not too many."""
    tensor = args[0].force()
    if len(args) != 1 or kwargs or not isinstance(tensor, TensorValue):
        return method_handler(_Base.tolist, "tolist")(space, args, kwargs)  # type: ignore[return-value]
    found = known_as(space, _Base.tolist, tensor)
    if found is None and tensor.meta is not None and all(map(is_at_hand, tensor.shape)):
        sizes = [int(size) for size in tensor.shape]  # a symbol is assumed to be the number it is
        if math.prod(sizes) <= _MOST_NUMBERS:
            # One transfer from another device is enough.
            local: Any = tensor if tensor.meta.device.type == "cpu" else record_method(space, "cpu", tensor)
            found = _numbers(space, local, sizes)
    if found is None:
        raise Unsupported(errors.DataDependentValue("Tensor.tolist"))
    return found


def _numbers(space: Space, tensor: TensorValue, sizes: list[int]) -> Value | None:
    """The numbers in a tensor, in nested lists; None where they cannot be had."""
    if not sizes:
        return as_number(space, tensor, object, _Base.tolist)
    parts: list[Any] = unbind(space, tensor) if sizes[0] else []
    items = [_numbers(space, part, sizes[1:]) for part in parts]
    return None if None in items else space.new_list(items)  # type: ignore[arg-type]


#: more make a graph that takes longer than the break
_MOST_NUMBERS = 64


def _getitem(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`tensor[index]`."""
    if len(args) != 2 or kwargs:
        return None
    parts = parts_of(space, args[1])
    given = with_tensors(space, args, parts)
    if given is not None:
        return space.call_builtin(_Base.__getitem__, given, {})
    scalar = space.trace.extension(ScalarIndexing).call(args[0].force(), parts)
    return by_number(space, item_at, args) if scalar is None else record(space, scalar, args, {})


def _setitem(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`tensor[index] = value`."""
    if len(args) != 3 or kwargs:
        return None
    given = with_tensors(space, args, parts_of(space, args[1]))
    return by_number(space, set_item_at, args) if given is None else space.call_builtin(_Base.__setitem__, given, {})


def _new(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`tensor.new(…)`: to it a torch.Size means sizes, where a tuple of the same numbers means data."""
    if len(args) == 2 and args[1].force().cls is torch.Size:
        args, kwargs = args[:1], {"size": args[1], **kwargs}
    return method_handler(_Base.new, "new")(space, args, kwargs)  # type: ignore[return-value]


def _bool(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`bool(x)` of a tensor of one element, or of a number in one: known when the graph runs (see LAST_RESORTS)."""
    value = args[0].force() if len(args) == 1 and not kwargs else None
    if isinstance(value, TensorValue) and value.meta is not None and all(size == 1 for size in value.shape):
        condition = value if value.dtype is torch.bool else record_method(space, "ne", value, 0)
        value = as_number(space, condition, object, _Base.__bool__)
    elif value is not None and value.symbolic:
        value = space.call(space.getattr(value, "__bool__"), [], {}).force()
    return value if value is not None and value.symbolic and value.cls is bool else None


def install() -> None:
    """Register the models."""
    decided = LAST_RESORTS[bool]
    LAST_RESORTS[bool] = lambda space, *call: decided(space, *call) or _bool(space, *call)
    register(torch.Tensor.__iter__, _iter)
    register(_Base.__getitem__, _getitem)
    register(_Base.__setitem__, _setitem)
    register(torch.Tensor.__len__, _len)
    register(_Base.__len__, _len)
    register(_Base.new, _new)
    register(_Base.tolist, _tolist)
    for name in ("item", "__int__", "__float__", "__index__", "__bool__", "is_nonzero"):
        register(getattr(_Base, name), _data(getattr(_Base, name), name in ("__bool__", "is_nonzero")))
    register(torch.is_nonzero, _data(torch.is_nonzero, True))
