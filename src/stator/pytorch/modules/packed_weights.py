"""Operators that are given weights packed into objects of C++, as those of torch's quantised modules are.

    torch.ops.quantized.linear_dynamic(x, self._packed_params._packed_params)

A graph has no such objects, and no fake tensor comes out of such an operator. In the graph an operator of Stator's own
stands for it, which is given the tensors, and the name of the call that it is to make; its result is described by a
call on zeros. What is packed does not change: which object it is, is guarded.
"""

from __future__ import annotations

import functools
import weakref
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.composed.quantized import Quantized, as_tensor
from stator.pytorch.fake.quiet import warnings_of_torch
from stator.pytorch.own_operators import define
from stator.pytorch.tensors.lowering import Call, Lowering, fill
from stator.pytorch.tensors.recording import record_function
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Nested, Operator
    from stator.space.space import Space

__all__ = ["with_objects"]

#: the library whose objects are made once, and whose operators do nothing but compute
_LIBRARY = "quantized"
#: what is to be called, by the names that graphs have for it; it goes when an object that it is given does
_calls: dict[str, PackedCall] = {}


class PackedCall:
    """The call of an operator; its objects are kept by the program, which a guard sees to."""

    def __init__(self, operator: Operator, args: list[Nested], kwargs: dict[str, Nested]) -> None:
        self.operator = operator
        self.args = args
        self.kwargs = kwargs

    def run(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        """What the operator gives, which may be quantised."""
        given = [arg(tensors) if isinstance(arg, QuantizedPlace) else fill(arg, tensors) for arg in self.args]
        given = [arg() if isinstance(arg, weakref.ref) else arg for arg in given]
        result: torch.Tensor = self.operator(*given, **fill(self.kwargs, tensors))
        return result

    def remember(self, name: str) -> None:
        """Be found by this name as long as the objects live."""
        if name not in _calls:
            _calls[name] = self
            for arg in self.args:
                if isinstance(arg, weakref.ref):
                    weakref.finalize(arg(), _calls.pop, name, None).atexit = False


class QuantizedPlace:
    """Where a quantised tensor stands among the arguments: it is made of three tensors."""

    def __init__(self, *parts: Nested) -> None:
        self.parts = parts

    def __call__(self, tensors: list[torch.Tensor]) -> torch.Tensor:
        integers, scale, zero_point = fill(self.parts, tensors)
        return internals.make_quantized(integers, float(scale), int(zero_point))


def _plain(result: torch.Tensor) -> torch.Tensor:
    return result.int_repr() if result.is_quantized else result


def _run(tensors: list[torch.Tensor], name: str) -> torch.Tensor:
    return _plain(_calls[name].run(tensors))


def _example(call: PackedCall, shapes: list[tuple[Any, Any]]) -> torch.Tensor:
    """What the call gives for tensors of ones. That quantised tensors are deprecated is no news of the program's."""
    with internals.disable_current_modes(), warnings_of_torch(set()):
        return call.run([torch.ones([*map(int, shape)], dtype=dtype) for shape, dtype in shapes])


def _fake(tensors: list[torch.Tensor], name: str) -> torch.Tensor:
    if any(map(internals.has_symbolic_sizes, tensors)):
        raise NotImplementedError(f"{name} on tensor with symbolic sizes")
    with internals.disable_current_modes():
        made = _plain(_example(_calls[name], [(tensor.shape, tensor.dtype) for tensor in tensors]))
    return tensors[0].new_empty_strided(made.shape, made.stride(), dtype=made.dtype)


@functools.cache
def _operator() -> Operator:
    return define("packed_call", "(Tensor[] tensors, str name) -> Tensor", _run, _fake)


def with_objects(space: Space, operator: Operator, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The call of an operator with such objects among its arguments; None for any other."""
    values = [arg.force() for arg in args]
    objects = {place: value for place, value in enumerate(values) if value.cls is torch.ScriptObject}
    tensors = tensors_among(values)
    if not objects or not tensors or not _is_taken(operator, [*objects.values()]):
        return None
    wanted = torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    if wanted or not all(map(_can_be_given, tensors)):
        return None  # autograd has no gradient of it, and says so only when it is asked for one
    lowering = Lowering(space, Call(operator, "call_function", operator))
    parts = [_part(space, lowering, value) for value in values]
    named = {name: lowering.value(arg) for name, arg in kwargs.items()}
    name = str((str(operator), *[key for _, key in parts], *[(name, key) for name, (_, key) in named.items()]))
    call = PackedCall(operator, [part for part, _ in parts], {name: part for name, (part, _) in named.items()})
    call.remember(name)
    made = record_function(space, _operator(), space.new_list(lowering.call.operands), name)
    return _described(space, call, lowering.call.operands, made)


def _can_be_given(tensor: TensorValue) -> bool:
    plain = not tensor.composed or (isinstance(tensor, Quantized) and not tensor.by_channel)
    device = tensor.parts[0].device if isinstance(tensor, Quantized) else tensor.device
    return plain and device.type == "cpu"


def _part(space: Space, lowering: Lowering, value: Value) -> tuple[Nested, object]:
    """An argument with the places of its tensors, and what tells it from others."""
    if isinstance(value, Quantized):
        integers, scale, zero_point = value.parts
        numbers = as_tensor(space, scale, torch.float64), as_tensor(space, zero_point, torch.int64)
        found = [lowering.value(part) for part in (integers, *numbers)]
        return QuantizedPlace(*[part for part, _ in found]), ("quantised", *[key for _, key in found])
    if value.cls is torch.ScriptObject:
        space.guard_identity(value)
        return weakref.ref(value.host), id(value.host)
    return lowering.value(value)


def _described(space: Space, call: PackedCall, operands: list[Any], made: Value) -> Value:
    """The result; if it is quantised, as what it is made of. How it is scaled, the call must have been told."""
    example = _example(call, [(operand.shape, operand.dtype) for operand in operands])
    if not example.is_quantized:
        return made
    scale, zero_point = example.q_scale(), example.q_zero_point()
    if scale not in call.args or zero_point not in call.args:
        name = str(call.operator)
        raise Unsupported(errors.UnsupportedTensorOperation(name, "its result is scaled as its operand is"))
    return Quantized(space, example.dtype, made, Constant(scale), Constant(zero_point))


def _is_taken(operator: Operator, objects: list[Any]) -> bool:
    name = operator.name() if isinstance(operator, internals.OpOverload) else internals.qualified_name(operator)
    made_once = f"__torch__.torch.classes.{_LIBRARY}."
    hosts = [value.host for value in objects]
    return name.startswith(f"{_LIBRARY}::") and all(
        host is not None and internals.script_type(host).qualified_name().startswith(made_once) for host in hosts
    )
