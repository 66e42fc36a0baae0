"""Floats that vary where an operator takes a number or a tensor: as tensors, for AOTAutograd's backends.

    momentum ** steps; 1.0 - x; average.lerp_(new, weight); x.masked_fill(mask, floor); torch.full((n,), t)

torch's kernels for fake tensors make a known number of what they are given as a Scalar: the graph would be one for this
value alone. The overload for tensors computes the same of a tensor of the others' type, which is what kernels make of a
number: that is so for single and double precision, where they do not compute in a wider type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.shapes.number_operands import constant, held, is_float, with_operands
from stator.pytorch.tensors.lowering import Call, Operand, fill
from stator.pytorch.tensors.scalars import is_integral
from stator.pytorch.tensors.tensor import TensorValue

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.space.space import Space

__all__ = ["filled_with_float", "scalars_in_tensors"]

_Base: Any = internals.TensorBase
#: functions that take a number or a tensor; Python's operators have these names without underscores
_EITHER = frozenset(
    (
        *("clamp", "clamp_max", "clamp_min", "clip", "copysign", "fill", "floor_divide", "floordiv", "fmod"),
        *("index_fill", "lerp", "masked_fill", "mod", "pow", "remainder", "rfloordiv", "rmod", "rpow", "rsub"),
        *("setitem", "where"),
    )
)
#: those whose second operand may not be a tensor in a number's place: kernels compute some powers otherwise
_OF_FIRST = frozenset({"pow"})
_BOUNDS = frozenset({"clamp", "clamp_max", "clamp_min", "clip"})
#: those that have other gradients with tensors: of elements that are equal to a bound, of powers of tiny numbers
_WITHOUT_GRADIENTS = _BOUNDS | {"pow", "rpow"}
#: functions that make a tensor of one number
_FILLED = frozenset({"full", "full_like", "new_full"})
#: data types in which kernels compute as they are
_EXACT = {torch.float32, torch.float64}


def scalars_in_tensors(space: Space, call: Call) -> Call | None:
    """The call with tensors for symbolic floats; None if there are none, or it is no operator that takes them so."""
    name, recorder = _name(call), space.trace.recorder
    if name not in _EITHER or recorder.keeps_order:
        return None
    floats, like = _floats(call), _like(call)
    if not floats or like is None or (name in _OF_FIRST and floats != [0]):
        return None
    if name in _WITHOUT_GRADIENTS and like.requires_grad and torch.is_grad_enabled():
        return None
    if not all(_fits(call.operands[index], like.dtype) for index in floats):
        return None
    again = with_operands(call, {i: _alike(recorder, held(recorder, call.operands[i]), like) for i in floats})
    if name in _BOUNDS:  # no overload takes a number and a tensor
        again.args = (call.args[0], *[_bound(recorder, again, item, like) for item in call.args[1:]])
        again.kwargs = {key: _bound(recorder, again, item, like) for key, item in call.kwargs.items()}
    return again


def filled_with_float(space: Space, call: Call) -> Call | None:
    """`torch.full((n,), t)` of a symbolic float: the same with a known number, and then filled with a tensor of it."""
    recorder = space.trace.recorder
    if _name(call) not in _FILLED or recorder.keeps_order or not call.kwargs.keys() <= {"dtype", "device"}:
        return None
    floats, like = _floats(call), next((o for o in call.operands if isinstance(o, TensorValue)), None)
    if len(floats) != 1 or (like is not None and like.meta is None):
        return None
    dtype = call.kwargs.get("dtype") or (torch.get_default_dtype() if like is None else like.dtype)
    if not dtype.is_floating_point or not _fits(call.operands[floats[0]], dtype):
        return None
    known = Call(call.function, call.kind, call.target, call.swap)
    items = [0.0 if index in floats else Operand(index) for index in range(len(call.operands))]
    known.args, known.kwargs = fill(call.args, items), fill(call.kwargs, items)
    known.operands, known.metas = call.operands, call.metas
    filling = Call(_Base.fill_, "call_method", "fill_")
    filling.args = (Operand(0), Operand(1))
    made: Any = recorder.record(known)
    number = held(recorder, call.operands[floats[0]])
    filling.operands, filling.metas = [made, number], [made.meta, number.meta]
    return filling


def _name(call: Call) -> str:
    return getattr(call.function, "__name__", "").strip("_")


def _floats(call: Call) -> list[int]:
    """The operands that are symbolic floats."""
    return [index for index, operand in enumerate(call.operands) if is_float(operand)]


def _fits(value: Any, dtype: torch.dtype) -> bool:
    """Whether a float is one that the data type can hold, for which it becomes a guard: of others kernels raise errors,
    where tensors of them hold infinity. Of a number that only the graph knows nobody can tell."""
    most = torch.finfo(dtype).max
    if hint_of(value.number) is None:
        return False
    return dtype is torch.float64 or bool((value.number <= most) & (value.number >= -most))


def _like(call: Call) -> TensorValue | None:
    """One of the tensors whose type the others have, if there are; masks and indices are no such."""
    tensors = [operand for operand in call.operands if isinstance(operand, TensorValue)]
    floating = [tensor for tensor in tensors if not (tensor.dtype is torch.bool or is_integral(tensor.dtype))]
    plain = all(tensor.meta is not None for tensor in tensors)
    dtypes = {tensor.dtype for tensor in floating}
    return floating[0] if plain and len(dtypes) == 1 and dtypes <= _EXACT else None


def _alike(recorder: Recorder, box: TensorValue, like: TensorValue) -> TensorValue:
    """The tensor that holds a number, converted as a kernel converts a number."""
    call = Call(_Base.to, "call_method", "to")
    call.args, call.kwargs = (Operand(0),), {"dtype": like.dtype, "device": like.device}
    call.operands, call.metas = [box], [box.meta]
    made: Any = recorder.record(call)
    assert isinstance(made, TensorValue)
    return made


def _bound(recorder: Recorder, call: Call, item: Any, like: TensorValue) -> Any:
    """A number that is known, as an operand of the call; anything else as it is."""
    if type(item) not in (int, float):
        return item
    box = _alike(recorder, constant(recorder, float(item)), like)
    call.operands.append(box)
    call.metas.append(box.meta)
    return Operand(len(call.operands) - 1)
