"""Numbers among the operands of a call: known before it, symbols, or the tensors that operators take in their place."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.fake.metadata import expression_of, hint_of
from stator.pytorch.shapes.computed import existing, made_again
from stator.pytorch.shapes.unbacked import symbols_of
from stator.pytorch.shapes.whole import is_of_ints, whole_number
from stator.pytorch.tensors.lowering import Call, Operand, fill
from stator.pytorch.tensors.opaque import make_opaque
from stator.pytorch.tensors.scalars import is_integral, number_in
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.space.space import Space

__all__ = [
    "MAKERS",
    "constant",
    "held",
    "is_float",
    "of_python",
    "tensor_of_float",
    "tensor_of_floats",
    "tensor_of_symbols",
    "with_conditions",
    "with_numbers",
    "with_operands",
    "with_tensors",
]

_Base: Any = internals.TensorBase
#: functions to which a condition is a number, beside tensors of numbers
_ARITHMETIC = frozenset(
    prefix + name
    for name in ("add", "mul", "multiply", "truediv", "true_divide", "div", "divide")
    for prefix in ("", "r")
)

#: what torch's symbols are made of, and its `TensorReferenceAnalysis` lacks
_WITHOUT_TENSORS = frozenset(("PythonMod", "Piecewise", "Where"))

#: functions that make a tensor of a number
MAKERS = (torch.tensor, torch.as_tensor)


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
    if not is_float(value) or not _is_first(call, 0):
        return None
    if len(call.args) > 1 or not call.kwargs.keys() <= {"dtype", "device"}:
        return None
    recorder = space.trace.recorder
    return _converted(call, held(recorder, value))


def _converted(call: Call, box: TensorValue) -> Call:
    """The tensor that a call makes of a number, or of several, as a copy of one in double precision."""
    again = Call(_Base.to, "call_method", "to")
    given = {name: option for name, option in call.kwargs.items() if option is not None}
    again.args, again.kwargs = (Operand(0),), {"dtype": torch.get_default_dtype(), **given, "copy": True}
    again.operands, again.metas = [box], [box.meta]
    return again


def tensor_of_floats(space: Space, call: Call) -> Call | None:
    """`torch.tensor([rate, 1.0])` with symbolic floats that existing numbers give, of tensors that the graph is given:
    AOTAutograd would make constants of them."""
    items = call.args[0] if len(call.args) == 1 else None
    if not isinstance(items, list | tuple) or not call.kwargs.keys() <= {"dtype", "device"}:
        return None
    if not all(map(is_float, call.operands)) or not all(type(item) in (Operand, float) for item in items):
        return None
    recorder = space.trace.recorder
    stacked = Call(torch.stack, "call_function", torch.stack)
    stacked.args = ([Operand(index) for index in range(len(items))],)
    for item in items:
        value = call.operands[item.index] if type(item) is Operand else None
        box = constant(recorder, item) if value is None else held(recorder, value)
        stacked.operands.append(box)
        stacked.metas.append(box.meta)
    made: Any = recorder.record(stacked)
    return _converted(call, made)


def of_python(space: Space, call: Call) -> Call | None:
    """`x + n**2 * 0.5` of an int that varies, with the float as one that CPython computes before the graph runs: in
    tensors AOTAutograd makes it of 32 bits, and of `n % 2` an error. None where there is none such.

    Floats of sizes are left to the backend, unless it has an error: few are of more than 24 bits.
    """
    recorder = space.trace.recorder
    if recorder.keeps_order:
        return None
    found = {index: operand for index, operand in enumerate(call.operands) if _is_of_existing_ints(recorder, operand)}
    before = {
        index: number for index, operand in found.items() if (number := existing(space, operand)) and number.symbolic
    }
    return with_operands(call, before) if before else None


def _is_of_existing_ints(recorder: Recorder, operand: Any) -> bool:
    if not is_float(operand) or operand.source is not None or not is_of_ints(operand):
        return False
    import sympy  # type: ignore[import-untyped]

    known = [recorder.shapes.symbols.get(symbol) for symbol in symbols_of(operand.number)]
    if any(number is not None and number.source in recorder.shapes.numbers for number in known):
        return True
    parts = sympy.preorder_traversal(expression_of(operand.number))
    return any(type(part).__name__ in _WITHOUT_TENSORS for part in parts)


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
    return with_operands(call, {index: whole_number(space, torch.sym_int, call.operands[index]) for index in found})


def _is_later(operand: Any) -> bool:
    """Whether it is a condition that is known when the graph runs."""
    return bool(operand.symbolic) and operand.cls is bool and hint_of(operand.number) is None


def with_tensors(space: Space, call: Call) -> Call | None:
    """`torch._fused_adam_(…, lr=rate, beta1=momentum)` of symbolic floats with tensors in their places: no operator
    takes symbols for what its schema calls a float. The operator has an overload that takes a tensor there, or it only
    writes and may stand behind one that does. None where there is none such."""
    places = {name: arg.index for name, arg in call.kwargs.items() if type(arg) is Operand}
    names = {name: index for name, index in places.items() if is_float(call.operands[index])}
    if not names:
        return None
    overloaded = _tensors_or_floats(getattr(call.function, "__name__", ""))
    again, chosen = with_operands(call, {}), {index for name, index in names.items() if name in overloaded}
    others = tuple(name for name in names if name not in overloaded)
    if others and make_opaque(again, others):
        chosen.update(names.values())
    if not chosen:
        return None
    recorder, values = space.trace.recorder, call.operands
    return with_operands(again, {index: held(recorder, values[index]) for index in chosen})


def is_float(operand: Any) -> bool:
    """Whether it is a symbolic float."""
    return bool(operand.symbolic) and operand.cls is float


def with_operands(call: Call, others: dict[int, Any]) -> Call:
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


def held(recorder: Recorder, value: Any) -> Any:
    """A number that varies, in a tensor."""
    return _boxed(recorder, value) or _multiplied(recorder, value)


def _multiplied(recorder: Recorder, value: Any) -> Any:
    """One, as a tensor, times a number that the graph computes: AOTAutograd knows to do without the number there."""
    product = Call(torch.mul, "call_function", torch.mul)
    product.args = (Operand(0), Operand(1))
    made = constant(recorder, 1.0)
    product.operands, product.metas = [made, value], [made.meta, value.meta]
    return recorder.record(product)


def constant(recorder: Recorder, number: float) -> Any:
    """A known number, in a tensor."""
    full = Call(torch.full, "call_function", torch.full)
    full.args, full.kwargs = ((), number), {"dtype": torch.float64, "device": "cpu"}
    return recorder.record(full)


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


def _is_integer(operand: TensorValue) -> bool:
    return len(operand.shape) == 0 and is_integral(operand.dtype)
