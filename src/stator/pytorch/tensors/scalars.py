"""The number in a tensor of one element: known while tracing, or a symbol that the graph computes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.fake.failure import Failure
from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.shapes.computed import computed_number
from stator.pytorch.shapes.symbols import SymValue, compute
from stator.pytorch.shapes.whole import number_of, recorded_with, whole_number
from stator.pytorch.tensors.known import contents, is_scalar_member
from stator.pytorch.tensors.lowering import Call
from stator.pytorch.tensors.recipes import Search
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.value import Constant, Raised, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Function, Number
    from stator.space.space import Space

__all__ = ["as_number", "is_at_hand", "is_integral", "known_as", "number_in", "scalar", "truth_of_sizes"]

_Base: Any = internals.TensorBase
#: operations on sizes, and elements of a tensor, that are worth computing before the graph runs
_MOST = 32, 1 << 14
#: what holds a condition as a number of these classes
_DTYPES: dict[type, torch.dtype] = {int: torch.int64, float: torch.float32}


def is_at_hand(size: Number) -> bool:
    """Whether a size has a value in this call."""
    return hint_of(size) is not None


def as_number(space: Space, tensor: TensorValue, kind: type, reader: Function = _Base.item) -> Value | None:
    """The only element as a number that is known when the graph runs; None where it cannot be had.

    Args:
        kind: the class of the number; `object` for that of the element.
        reader: what the program has called, by which messages tell where the number is from.
    """
    if not space.trace.config.capture_scalar_outputs or tensor.dtype.is_complex:
        return None
    if tensor.dtype is torch.bool and kind in _DTYPES:  # symbols do not compute with conditions
        held = recorded_with(space, Call(_Base.to, "call_method", "to"), tensor, dtype=_DTYPES[kind])
        return as_number(space, held, kind, reader)
    recorder = space.trace.recorder
    place = None if recorder.effects.acts else _place(recorder, tensor)
    number = recorder.shapes.elements.get(place) or (recorder.shapes.begun and _of_sizes(space, tensor)) or None
    if number is None:
        try:
            number = number_of(space, tensor, reader)
        except Failure:  # more than one element: eager words the error
            return None
    if place is not None:
        recorder.shapes.elements[place] = number
    if kind in (object, number.cls):
        return number
    if not isinstance(number, SymValue):  # fake tensors know it
        return _converted(space, kind, number.as_host(space))
    if kind is int:
        return whole_number(space, torch.sym_int, number, reader)
    return compute(space, torch.sym_float, [number])


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
    """What tells a number from others that are read: of the same the second is the symbol that the first is.

    Numbers that one function gives for the same tensors are the same as long as nobody writes to these in between:

        i = x.argmax().item()
        x[i] = 0                # the next `x.argmax()` is another number
    """
    operation, graph, effects = tensor.operation, id(recorder.nodes.graph), recorder.effects
    if operation is not None and operation.key is not None and not operation.effectful:
        writers = effects.writers_of([tensor, *tensors_among(operation.operands)])
        if all(writer.step < operation.step for writer in writers):
            facts = operation.function, operation.key, operation.state, tuple(operation.operands), tensor.path
            return graph, facts, writers
    return graph, tensor, effects.writers_of([tensor])


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
    return known_as(space, host, tensor) or as_number(space, tensor, kind, host)


def number_in(space: Space, tensor: TensorValue) -> Value | None:
    """The number in a tensor of one integer, as C code reads it: known, or known when the graph runs."""
    return known_as(space, _Base.item, tensor) or as_number(space, tensor, int)


def is_integral(dtype: torch.dtype) -> bool:
    """Whether C code takes an element of this type for an index."""
    return not (dtype.is_floating_point or dtype.is_complex)
