"""Quantised tensors that the program makes: integers, and how they are scaled.

    q = torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)    # round(x / 0.1), in the limits of the type
    return q.dequantize()                                    # (q - 0) * 0.1

Fake tensors have no quantised types: what ought to have one has the original's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.composed.composed import Composed, Model, bind
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.tensors.recording import record_function, record_method
from stator.pytorch.tensors.scalars import as_number
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.protocol import register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = ["Quantized", "as_tensor", "install"]

_Base: Any = internals.TensorBase
#: the types that are traced: what they are stored as, and their limits
_STORED = {
    torch.qint8: (torch.int8, -128, 127),
    torch.quint8: (torch.uint8, 0, 255),
}


class Quantized(Composed):
    """`parts` are the integers, the scale and the zero point; by channel they are tensors, and the axis comes last."""

    __slots__ = ("quantized_dtype",)
    KIND = "a quantised tensor"

    def __init__(self, space: Space, dtype: torch.dtype, *parts: Value) -> None:
        super().__init__(space, *parts)
        self.quantized_dtype = dtype

    @property
    def by_channel(self) -> bool:
        return len(self.parts) > 3

    def facts(self) -> dict[str, object]:
        integers = self.parts[0]
        own = {"dtype": self.quantized_dtype, "device": integers.device, "ndim": len(integers.shape)}
        return super().facts() | own | {"is_quantized": True}

    def get_field(self, space: Space, name: str) -> Value | None:
        return space.getattr(self.parts[0], name) if name == "shape" else super().get_field(space, name)

    def shaped_for(self, space: Space, part: Any) -> Any:
        """A scale or zero point in a shape that goes with the integers."""
        if not self.by_channel:
            return part
        shape = [1] * len(self.parts[0].shape)
        shape[space.known(self.parts[3])] = -1
        return record_method(space, "reshape", part, space.fresh(tuple(shape)))


def _made(integers: torch.Tensor, scale: Any, zero_point: Any, axis: int | None = None) -> torch.Tensor:
    if axis is None:
        return internals.make_quantized(integers, float(scale), int(zero_point))
    return internals.make_quantized_by_channel(integers, scale, zero_point, axis)


Quantized.MAKE = staticmethod(_made)


def _quantize(space: Space, made: Quantized, given: Any) -> Quantized:
    """Give one that has a scale and a zero point its integers."""
    stored, low, high = _STORED[made.quantized_dtype]
    scale, zero_point = (made.shaped_for(space, part) for part in made.parts[1:3])
    if scale.constant:
        inverse: Any = Constant((1 / torch.tensor(space.known(scale), dtype=torch.float32)).item())
    else:
        inverse = record_method(space, "reciprocal", as_tensor(space, scale, torch.float32))
    plain = record_method(space, "detach", given)
    scaled = record_method(space, "round", record_method(space, "mul", plain, inverse))
    placed = record_method(space, "add", scaled, zero_point)
    certain = record_method(space, "nan_to_num", placed, 0 if made.by_channel else high)
    limited = record_method(space, "clamp", certain, low, high)
    made.parts = (record_method(space, "to", limited, stored), *made.parts[1:])
    return made


def _operands(host: Host, names: tuple[str, ...], args: list[Value], kwargs: dict[str, Value]) -> dict[str, Any]:
    """The arguments of a function that quantises; a break where it does not take them, or takes more than a tensor."""
    given: dict[str, Any] = bind(names, args, kwargs)
    tensor = given["input"]
    usual = isinstance(tensor, TensorValue) and not tensor.composed and tensor.dtype is torch.float32
    dtype = given["dtype"].host if given["dtype"].constant else None
    if not usual or tensor.device.type != "cpu" or dtype not in _STORED:
        raise Unsupported(
            errors.UnsupportedTensorOperation(describe_callable(host), "fake tensors cannot be quantised")
        )
    return given | {"dtype": dtype}


def _per_tensor(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.quantize_per_tensor(input, scale, zero_point, dtype)`."""
    names = ("input", "scale", "zero_point", "dtype")
    given = _operands(torch.quantize_per_tensor, names, args, kwargs)
    scale, zero_point = (_kept(space, given[name]) for name in names[1:3])
    return _quantize(space, Quantized(space, given["dtype"], given["input"], scale, zero_point), given["input"])


def _per_channel(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch.quantize_per_channel(input, scales, zero_points, axis, dtype)`."""
    names = ("input", "scales", "zero_points", "axis", "dtype")
    given = _operands(torch.quantize_per_channel, names, args, kwargs)
    scales = record_method(space, "to", given["scales"], torch.float64, copy=True)
    zero_points = record_method(space, "to", given["zero_points"], torch.int64, copy=True)
    axis = Constant(space.known(given["axis"]))
    made = Quantized(space, given["dtype"], given["input"], scales, zero_points, axis)
    return _quantize(space, made, given["input"])


def _kept(space: Space, part: Value) -> Value:
    """A scale or zero point as it is now: somebody may write to a tensor later."""
    if tensors_among([part]):
        return record_method(space, "clone", part)
    return part if part.symbolic else Constant(space.known(part))


def as_tensor(space: Space, part: Value, dtype: torch.dtype) -> Value:
    """A scale or zero point as a tensor, where it may be a number."""
    if tensors_among([part]):
        return record_method(space, "to", part, dtype)
    return record_function(space, torch.scalar_tensor, part, dtype=dtype)


def _dequantize(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`q.dequantize()`, which is a copy; of any other tensor it is the tensor, as float32."""
    (tensor,) = args
    if not isinstance(tensor, Quantized):
        raise Unsupported(errors.UnsupportedTensorOperation("Tensor.dequantize", "its operand may be any tensor"))
    integers, scale, zero_point = tensor.parts[:3]
    exact = record_method(space, "to", integers, torch.float32)
    above = record_method(space, "sub", exact, tensor.shaped_for(space, zero_point))
    factor = tensor.shaped_for(space, scale)
    if not factor.constant:
        factor = as_tensor(space, factor, torch.float32)
    return record_method(space, "mul", above, factor)


def _part(index: int, by_channel: bool, kind: type = object) -> Model:
    """What an operation that asks for one of the parts gives."""

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tensor: Any = args[0]
        part = tensor.parts[index]
        if tensor.by_channel is not by_channel and index:
            raise tensor.refuse("a question about how it is scaled")
        if not tensors_among([part]):
            return part
        if by_channel or not index:
            return record_method(space, "clone", part)
        found = as_number(space, part, kind)
        if found is None:
            raise Unsupported(errors.DataDependentValue("Tensor.q_scale"))
        return found

    return model


def _scheme(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`q.qscheme()`."""
    tensor: Any = args[0]
    if tensor.by_channel:
        floating = tensor.parts[2].dtype.is_floating_point
        return space.fresh(torch.per_channel_affine_float_qparams if floating else torch.per_channel_affine)
    return space.fresh(torch.per_tensor_affine)


def _asked(name: str) -> Model:
    """An operation that asks for the sizes, which are those of the integers."""

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return record_method(space, name, args[0].parts[0], *args[1:], **kwargs)  # type: ignore[attr-defined]

    return model


def _moved(name: str) -> Model:
    """An operation that arranges the elements anew, or copies them."""

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tensor: Any = args[0]
        if tensor.by_channel and name not in _SAME_PLACE:
            raise tensor.refuse(f"Tensor.{name}")
        integers = record_method(space, name, tensor.parts[0], *args[1:], **kwargs)
        return Quantized(space, tensor.quantized_dtype, integers, *tensor.parts[1:])

    return model


def _relu(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`q.relu()`: nothing lies below zero."""
    given: dict[str, Any] = bind(("input", "inplace"), args, kwargs)
    tensor = given["input"]
    if tensor.by_channel or not given["inplace"].constant or given["inplace"].host:
        raise tensor.refuse("relu")
    zero = as_tensor(space, tensor.parts[2], tensor.parts[0].dtype)
    integers = record_method(space, "maximum", tensor.parts[0], zero)
    return Quantized(space, tensor.quantized_dtype, integers, *tensor.parts[1:])


_SAME_PLACE = frozenset({"clone", "contiguous", "detach"})
_ARRANGED = ("view", "reshape", "transpose", "permute", "flatten", "unsqueeze", "squeeze", "t")
Quantized.models = {
    _Base.dequantize: _dequantize,
    torch.dequantize: _dequantize,
    _Base.int_repr: _part(0, False),
    torch.int_repr: _part(0, False),
    _Base.q_scale: _part(1, False, float),
    torch.q_scale: _part(1, False, float),
    _Base.q_zero_point: _part(2, False, int),
    torch.q_zero_point: _part(2, False, int),
    _Base.q_per_channel_scales: _part(1, True),
    torch.q_per_channel_scales: _part(1, True),
    _Base.q_per_channel_zero_points: _part(2, True),
    torch.q_per_channel_zero_points: _part(2, True),
    _Base.q_per_channel_axis: _part(3, True),
    torch.q_per_channel_axis: _part(3, True),
    _Base.qscheme: _scheme,
    _Base.relu: _relu,
    torch.relu: _relu,
    torch.nn.functional.relu: _relu,
    **{getattr(_Base, name): _asked(name) for name in ("size", "dim", "ndimension", "numel", "nelement", "stride")},
    **{getattr(_Base, name): _moved(name) for name in (*_SAME_PLACE, *_ARRANGED)},
    **{getattr(torch, name): _moved(name) for name in ("clone", "reshape", "transpose", "permute", "flatten")},
}


def install() -> None:
    """Register the models."""
    register(torch.quantize_per_tensor, _per_tensor)
    register(torch.quantize_per_channel, _per_channel)
