"""The number in a tensor of one element: known while tracing, or a symbol that the graph computes."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import Failure, describe_callable
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.shapes.computed import computed_number, made_again
from stator.pytorch.shapes.symbols import SymValue, compute
from stator.pytorch.shapes.whole import whole_number
from stator.pytorch.tensors.known import contents, is_scalar_member
from stator.pytorch.tensors.lowering import Call, Operand, fill
from stator.pytorch.tensors.recipes import Search
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Constant, Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Function, Number
    from stator.space.space import Space

__all__ = [
    "MAKERS",
    "as_number",
    "is_at_hand",
    "is_integral",
    "known_as",
    "number_in",
    "scalar",
    "tensor_of_float",
    "tensor_of_symbols",
    "truth_of_sizes",
    "with_conditions",
    "with_numbers",
    "with_tensors",
]

_Base: Any = internals.TensorBase
#: operations on sizes, and elements of a tensor, that are worth computing before the graph runs
_MOST = 32, 1 << 14
#: what holds a condition as a number of these classes
_DTYPES: dict[type, torch.dtype] = {int: torch.int64, float: torch.float32}

#: functions to which a condition is a number, beside tensors of numbers
_ARITHMETIC = frozenset(
    prefix + name
    for name in ("add", "mul", "multiply", "truediv", "true_divide", "div", "divide")
    for prefix in ("", "r")
)

#: functions that make a tensor of a number
MAKERS = (torch.tensor, torch.as_tensor)


def is_at_hand(size: Number) -> bool:
    """Whether a size has a value in this call."""
    return hint_of(size) is not None


def as_number(space: Space, tensor: TensorValue, kind: type) -> Value | None:
    """The only element as a number that is known when the graph runs; None where it cannot be had."""
    if not space.trace.config.capture_scalar_outputs or tensor.dtype.is_complex:
        return None
    if tensor.dtype is torch.bool and kind in _DTYPES:  # symbols do not compute with conditions
        return as_number(space, _as_dtype(space, tensor, _DTYPES[kind]), kind)
    recorder = space.trace.recorder
    place = None if recorder.effects.acts or tensor.root in recorder.effects.rewritten else _place(recorder, tensor)
    number = recorder.shapes.elements.get(place) or (recorder.shapes.begun and _of_sizes(space, tensor)) or None
    if number is None:
        call = Call(_Base.item, "call_method", "item")
        call.args, call.operands = (Operand(0),), [tensor]
        try:
            number = recorder.record(call)
        except Failure:  # more than one element: eager words the error
            return None
    if place is not None:
        recorder.shapes.elements[place] = number
    if kind in (object, number.cls):
        return number
    if not isinstance(number, SymValue):  # fake tensors know it
        return _converted(space, kind, number.as_host(space))
    return whole_number(space, torch.sym_int, number) if kind is int else compute(space, torch.sym_float, [number])


def _as_dtype(space: Space, tensor: TensorValue, dtype: torch.dtype) -> Any:
    call = Call(_Base.to, "call_method", "to")
    call.args, call.operands, call.metas = (Operand(0), dtype), [tensor], [tensor.meta]
    return space.trace.recorder.record(call)


def _of_sizes(space: Space, tensor: TensorValue) -> Value | None:
    """The number in a tensor that is computed of sizes (`torch.div(x.size(1), 8)`), and of the scalars that modules
    hold, before the graph runs."""
    recorder = space.trace.recorder

    def begins(value: TensorValue | SymValue) -> bool:
        return not isinstance(value, TensorValue) or is_scalar_member(recorder, value)

    search = Search(recorder, recorder.state.entry_key, begins, _MOST)
    recipe = search.recipe(tensor)
    found = None if recipe is None or not any(each.symbolic for each in search.given) else search.now(recipe)
    if recipe is None or found is None or found.numel() != 1:
        return None
    sources: list[Any] = [value.source for value in search.given]
    return computed_number(
        space, found.item(), sources, lambda *numbers: recipe.run(numbers).item(), recipe.outcome.text
    )


def truth_of_sizes(space: Space, tensor: TensorValue) -> Value | None:
    """The truth of what is computed of sizes (`if torch.tensor(x.size(0)) > 4:`); None for any other tensor."""
    number = _of_sizes(space, tensor) if space.trace.recorder.shapes.begun else None
    return None if number is None else Constant(space.truth(number))


def _place(recorder: Recorder, tensor: TensorValue) -> Any:
    """What tells a number from others that are read from tensors nobody writes to: the same is one symbol."""
    operation = tensor.operation
    if operation is None or operation.key is None or operation.effectful:
        return id(recorder.nodes.graph), tensor
    return id(recorder.nodes.graph), operation.function, operation.key, tuple(operation.operands), tensor.path


def known_as(space: Space, conversion: Function, value: Value, branch: bool = False) -> Value | None:
    """What `conversion` makes of a tensor whose contents are known (torch.tensor(3)); None for any other.

    Args:
        branch: whether the program branches on it.
    """
    real = contents(space.trace.recorder, value, branch)
    return None if real is None else _converted(space, conversion, real)


def _converted(space: Space, conversion: Function, real: object) -> Value:
    try:
        return space.fresh(conversion(real))
    except Exception as e:
        raise Raised(space.exception(e)) from None


def scalar(space: Space, tensor: TensorValue, kind: type) -> Value | None:
    """The only element as a number of the given class (of its own, for object): known, a symbol, or None."""
    host = {int: _Base.__int__, float: _Base.__float__}.get(kind, _Base.item)
    return known_as(space, host, tensor) or as_number(space, tensor, kind)


def number_in(space: Space, tensor: TensorValue) -> Value | None:
    """The number in a tensor of one integer, as C code reads it: known, or known when the graph runs."""
    return known_as(space, _Base.item, tensor) or as_number(space, tensor, int)


def with_numbers(space: Space, call: Call) -> Call | None:
    """The call with its operands of one integer as numbers, as C code reads sizes and bounds; None if there are none.

    The number is known, or read from the tensor in the graph. The first argument stays the tensor it is.
    """
    chosen: dict[int, Any] = {}
    for index, operand in enumerate(call.operands):
        if isinstance(operand, TensorValue) and not _is_first(call, index) and _is_integer(operand):
            number = number_in(space, operand)
            if number is None:
                return None
            chosen[index] = number
    if not chosen:
        return None
    again = Call(call.function, call.kind, call.target, call.swap)
    items: list[Any] = []
    for index, operand in enumerate(call.operands):
        number = chosen.get(index, operand)
        if number is not operand and not number.symbolic:
            items.append(number.as_host(space))
            continue
        items.append(Operand(len(again.operands)))
        again.operands.append(number)
        again.metas.append(getattr(number, "meta", None))
    again.args, again.kwargs = fill(call.args, items), fill(call.kwargs, items)
    return again


def tensor_of_float(space: Space, call: Call) -> Call | None:
    """`torch.tensor(rate * 0.5)` of a symbolic float that existing numbers give, as a copy of a tensor that the graph
    is given: the function would make a constant of it."""
    value = call.operands[0]
    if not value.symbolic or value.cls is not float or not _is_first(call, 0):
        return None
    if len(call.args) > 1 or not call.kwargs.keys() <= {"dtype", "device"}:
        return None
    recorder = space.trace.recorder
    box = _boxed(recorder, value) or _multiplied(recorder, value)
    again = Call(_Base.to, "call_method", "to")
    given = {name: option for name, option in call.kwargs.items() if option is not None}
    again.args, again.kwargs = call.args, {"dtype": torch.get_default_dtype(), **given, "copy": True}
    again.operands, again.metas = [box], [box.meta]
    return again


def with_conditions(space: Space, call: Call) -> Call | None:
    """`x * flag` of a symbolic condition, with the number that it is: AOTAutograd saves a condition for the backward
    pass without what it is computed of. None where there is none. Beside conditions the number would be of another
    type: the graph breaks."""
    if space.trace.recorder.keeps_order or getattr(call.function, "__name__", "").strip("_") not in _ARITHMETIC:
        return None
    found = [index for index, operand in enumerate(call.operands) if _is_later(operand)]
    if not found:
        return None
    if any(isinstance(operand, TensorValue) and operand.dtype is torch.bool for operand in call.operands):
        raise Unsupported(errors.DataDependentValue(describe_callable(_Base.item)))
    return _with_operands(call, {index: whole_number(space, torch.sym_int, call.operands[index]) for index in found})


def _is_later(operand: Any) -> bool:
    """Whether it is a condition that is known when the graph runs."""
    return bool(operand.symbolic) and operand.cls is bool and hint_of(operand.number) is None


def with_tensors(space: Space, call: Call) -> Call | None:
    """`torch._fused_adam_(…, lr=rate)` of a symbolic float as the operator's overload that takes a tensor there: no
    operator takes symbols for what its schema calls a float. None where there is none such."""
    floats = {index for index, operand in enumerate(call.operands) if operand.symbolic and operand.cls is float}
    names = _tensors_or_floats(getattr(call.function, "__name__", "")) if floats else frozenset[str]()
    places = [arg.index for name, arg in call.kwargs.items() if name in names and type(arg) is Operand]
    chosen = [index for index in places if index in floats]
    if not chosen:
        return None
    recorder, values = space.trace.recorder, call.operands
    return _with_operands(call, {i: _boxed(recorder, values[i]) or _multiplied(recorder, values[i]) for i in chosen})


def _with_operands(call: Call, others: dict[int, Any]) -> Call:
    """The call with others in the place of some operands."""
    again = Call(call.function, call.kind, call.target, call.swap)
    again.args, again.kwargs = call.args, call.kwargs
    again.operands, again.metas = list(call.operands), list(call.metas)
    for index, value in others.items():
        again.operands[index], again.metas[index] = value, value.meta
    return again


@functools.cache
def _tensors_or_floats(name: str) -> frozenset[str]:
    """The arguments of an operator of this name that are floats in one overload, and in another, which is the same
    otherwise, tensors."""
    packet = getattr(torch.ops.aten, name, None)
    if not isinstance(packet, internals.OpOverloadPacket) or "default" not in packet.overloads():
        return frozenset()
    usual, found = _kinds(packet.default), set[str]()
    for other in (_kinds(getattr(packet, each)) for each in packet.overloads()):
        differing = {key for key in usual if other.get(key) != usual[key]}
        if all((usual[key], other.get(key)) == ("float", "Tensor") for key in differing):
            found |= differing
    return frozenset(found)


def _kinds(operator: Any) -> dict[str, str]:
    return {arg.name: str(arg.type) for arg in internals.schema(operator).arguments}


def _boxed(recorder: Recorder, value: Any) -> TensorValue | None:
    """The number in a tensor that is made before the graph runs; None where only the graph can tell it."""
    if value.source is not None:
        return recorder.shapes.boxed(value)
    number = made_again(recorder, value)
    return None if number is None else recorder.shapes.box(number, hint_of(value.fake))


def _multiplied(recorder: Recorder, value: Any) -> Any:
    """One, as a tensor, times a number that the graph computes: AOTAutograd knows to do without the number there."""
    one = Call(torch.ones, "call_function", torch.ones)
    one.args, one.kwargs = ((),), {"dtype": torch.float64, "device": "cpu"}
    product = Call(torch.mul, "call_function", torch.mul)
    product.args = (Operand(0), Operand(1))
    made: Any = recorder.record(one)
    product.operands, product.metas = [made, value], [made.meta, value.meta]
    return recorder.record(product)


def tensor_of_symbols(call: Call) -> Call | None:
    """`torch.tensor([n, …])` with symbols among the numbers, as torch's own definition in Python, which takes them:
    the function in C++ would have them known."""
    if not any(operand.symbolic for operand in call.operands):
        return None
    again = Call(internals.refs.tensor, "call_function", internals.refs.tensor)
    again.args, again.kwargs, again.operands, again.metas = call.args, call.kwargs, call.operands, call.metas
    return again


def _is_first(call: Call, index: int) -> bool:
    first = call.args[0] if call.args else None
    return type(first) is Operand and first.index == index


def is_integral(dtype: torch.dtype) -> bool:
    """Whether C code takes an element of this type for an index."""
    return not (dtype.is_floating_point or dtype.is_complex)


def _is_integer(operand: TensorValue) -> bool:
    return len(operand.shape) == 0 and is_integral(operand.dtype)
