"""Tensors whose contents are known while tracing: made of constants alone, and not written since.

Their contents are computed for real when somebody asks. So `torch.tensor([1, 2]).tolist()` or a size that was divided
by `torch.div` breaks nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.tensors.lowering import Call, Operand, fill
from stator.tensors.tensor import TensorValue

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.objects.value import Value
    from stator.tensors.recorder import Operation, Recorder

__all__ = ["contents", "with_numbers"]

#: elements of a tensor that is worth computing while tracing
_MOST = 1024
_DEPTH = 64


def contents(recorder: Recorder, value: Value) -> Any:
    """A real tensor equal to the traced one, or None where its contents are not known."""
    if not isinstance(value, TensorValue) or value.operation is None:
        return None
    with torch.no_grad():
        return _computed(recorder, value, {}, _DEPTH)


def _computed(recorder: Recorder, value: TensorValue, done: dict[int, Any], depth: int) -> Any:
    operation = value.operation
    if operation is None or depth == 0 or not _is_simple(recorder, value, operation):
        return None
    if id(operation) not in done:
        done[id(operation)] = _run(recorder, operation, done, depth)
    result = done[id(operation)]
    for index in value.path if result is not None else ():
        result = result[index]
    return result


def _is_simple(recorder: Recorder, value: TensorValue, operation: Operation) -> bool:
    meta = value.meta
    if meta is None or meta.device.type != "cpu" or meta.requires_grad or value.root in recorder.rewritten:
        return False
    if operation.key is None or operation.state is not recorder.state.key or operation.effectful:
        return False
    size = 1
    for n in meta.shape:
        size *= n
    return size <= _MOST and "empty" not in getattr(operation.function, "__name__", "empty")


def _run(recorder: Recorder, operation: Operation, done: dict[int, Any], depth: int) -> Any:
    operands = []
    for operand in operation.operands:
        real = _computed(recorder, operand, done, depth - 1) if isinstance(operand, TensorValue) else None
        if real is None:
            return None
        operands.append(real)
    try:
        return operation.function(*fill(operation.args, operands), **fill(operation.kwargs, operands))
    except Exception:
        return None


def with_numbers(space: Space, call: Call) -> Call | None:
    """The call with its operands of one integer as numbers, as C code reads sizes and bounds; None if there are none.

    The number is known, or read from the tensor in the graph. The first argument stays the tensor it is.
    """
    from stator.tensors.specials import number_in

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


def _is_first(call: Call, index: int) -> bool:
    first = call.args[0] if call.args else None
    return type(first) is Operand and first.index == index


def _is_integer(operand: TensorValue) -> bool:
    return len(operand.shape) == 0 and not (operand.dtype.is_floating_point or operand.dtype.is_complex)
