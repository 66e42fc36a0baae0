"""Between tensors and arrays: `Tensor.numpy`, `torch.from_numpy` and its like."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from stator import errors
from stator.pytorch.numpy.array_calls import numpy_dtype, refusal
from stator.pytorch.numpy.array_value import ArrayValue
from stator.pytorch.numpy.elements import stacked
from stator.pytorch.state.function_modes import active
from stator.pytorch.tensors.calls import function_handler
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import register
from stator.space.value import Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["install"]


def _numpy(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`Tensor.numpy`."""
    tensor = args[0].force()
    options = [*args[1:], *kwargs.values()]
    forced = bool(options) and space.known(options[0].force()) is True
    bits = tensor.meta.bits if isinstance(tensor, TensorValue) and tensor.meta is not None else (False, False)
    plain = isinstance(tensor, TensorValue) and tensor.cls in (torch.Tensor, torch.nn.Parameter) and not any(bits[:2])
    if not plain or len(options) > 1 or tensor.device.type != "cpu" or _has_no_dtype(tensor.dtype):  # type: ignore[attr-defined]
        raise Unsupported(errors.DataDependentValue("Tensor.numpy"))
    assert isinstance(tensor, TensorValue)
    if tensor.requires_grad and not forced:
        try:
            torch.empty(0, requires_grad=True).numpy()
        except RuntimeError as e:
            raise Raised(space.exception(e)) from None
    array = ArrayValue(record_method(space, "detach", tensor) if tensor.requires_grad else tensor)
    array.owns_memory = False
    return array


def _has_no_dtype(dtype: torch.dtype) -> bool:
    try:
        numpy_dtype(dtype)
    except TypeError:
        return True
    return False


def _to_tensor(host: Host, copies: bool, otherwise: Handler | None) -> Handler:
    """`torch.from_numpy` and its like."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        array = args[0].force() if args else None
        if not isinstance(array, ArrayValue):
            found = None if otherwise is None else stacked(space, host, args, kwargs)
            return found if found is not None or otherwise is None else otherwise(space, args, kwargs)
        if len(args) != 1 or not kwargs.keys() <= {"dtype", "device"} or active():
            raise Unsupported(errors.UnsupportedTensorOperation(f"torch.{host.__name__}", "of an array, with options"))
        if array.cls is not np.ndarray and host is torch.from_numpy:
            raise space.error(TypeError, f"expected np.ndarray (got {array.cls.__qualname__})")
        if array.strides is not None:
            raise _refuse_strides(space, array.strides)
        tensor = record_method(space, "detach", array.tensor)
        if copies:
            tensor = record_method(space, "clone", tensor, memory_format=torch.contiguous_format)
        given = {name: arg for name, arg in kwargs.items() if space.known(arg.force()) is not None}
        return record_method(space, "to", tensor, **given) if given else tensor

    return handler


def _refuse_strides(space: Space, strides: tuple[int, ...]) -> Raised:
    """torch takes no array with negative strides, not even to copy it."""
    try:
        torch.from_numpy(np.empty(2)[::-1])
    except ValueError as e:
        if min(strides) < 0:
            return Raised(space.exception(e.with_traceback(None)))
    raise refusal("ndarray", "it is a view that no tensor can be")


def install() -> None:
    """Register the models."""
    register(torch.Tensor.numpy, _numpy)
    register(torch.from_numpy, _to_tensor(torch.from_numpy, False, None))
    for host, copies in ((torch.as_tensor, False), (torch.tensor, True)):
        register(host, _to_tensor(host, copies, function_handler(host)))
