"""Arithmetic and comparisons of floats that vary, as CPython has them where torch's symbols know better.

Of floats that there are before the graph runs, CPython computes the number at each call, which then is an existing
number itself. Of those that the graph reads a tensor is computed, as long as no error is possible.

    loss = x.norm().item()
    if loss - loss != 0:        # sub(scalar_tensor(loss), scalar_tensor(loss)).item(): 0, and NaN of an infinite loss
"""

from __future__ import annotations

import functools
import math
import operator
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.shapes.computed import compute_again, existing, made_again
from stator.pytorch.shapes.floats.quotients import quotient
from stator.pytorch.shapes.floats.real_numbers import operands_of, takes_for_real
from stator.pytorch.shapes.number_operands import held
from stator.pytorch.shapes.symbols import DIVISIONS, SymValue, compute
from stator.pytorch.shapes.whole import as_symbol, is_of_ints
from stator.pytorch.tensors.recording import record_function, record_method

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from stator.pytorch.types import Function
    from stator.space.protocol import Handler
    from stator.space.space import Space
    from stator.space.value import Value

    OfTwo: TypeAlias = Callable[[Space, Any, Any], Any]

__all__ = ["exactly", "in_tensors", "number_in"]


def exactly(models: dict[int, Handler]) -> dict[int, Handler]:
    """Models of methods of numbers, with what CPython computes where torch's symbols would simplify."""
    return {method: _exact(handler) for method, handler in models.items()}


def _exact(handler: Handler) -> Handler:
    def exact(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        result = handler(space, args, kwargs)
        for better in (_of_floats, _of_real_numbers):
            found = better(space, result) if isinstance(result, SymValue) else None
            result = result if found is None else found
        return result

    return exact


def _of_real_numbers(space: Space, result: Any) -> Value | None:
    """What CPython computes in place of what torch knows of real numbers; None where that is the same."""
    recorder = result.recorder
    if not takes_for_real(recorder, result):
        return None
    operands, function = operands_of(recorder, result), result._node.target
    if made_again(recorder, result) is not None:
        # a condition is computed again where it is decided
        return None if result.cls is bool else compute_again(space, function, operands)
    # A condition that torch does not know is known when the graph has run. (With a hint it is on existing numbers, by
    # too many steps to compute it again.)
    waits = result.cls is bool and hint_of(result.number) is None and not _is_known(operands, result.number)
    found = None if waits else _of_tensors(space, function, operands)
    return None if found is None else _in_place_of(result, found)


def _of_floats(space: Space, result: Any) -> Value | None:
    """A float that is computed of floats: where Python makes them of ints, backends make some of 32 bits. Else None."""
    if result.cls is not float or result.recorder.keeps_order:
        return None
    operands = operands_of(result.recorder, result)
    ints = [operand for operand in operands if operand.symbolic and is_of_ints(operand)]
    exists = hint_of(result.number) is not None
    if not ints or (exists and is_of_ints(result)):
        return None  # one of ints alone is computed where a tensor is to be computed of it (`of_python`)

    def as_float(number: Any) -> Any:
        if not exists:
            return as_symbol(space, number, torch.float64)
        return (existing(space, number) if number.cls is float else compute_again(space, float, [number])) or number

    floats = [as_float(operand) if operand in ints else operand for operand in operands]
    return _in_place_of(result, compute(space, result._node.target, floats))


def _in_place_of(result: Any, found: Value) -> Value:
    """What takes the place of a number just recorded, whose node would be kept for the error that it may raise."""
    node = result._node
    if not node.users:
        result.recorder.nodes.values.pop(node)
        node.graph.erase_node(node)
    return found


def _is_known(operands: list[Any], condition: Any) -> bool:
    """Whether torch knows a condition on what only the graph reads, or is not to be asked: of infinity it warns."""
    if not all(operand.symbolic or math.isfinite(operand.host) for operand in operands):
        return True
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    return statically_known_true(condition) or statically_known_true(torch.sym_not(condition))


def _of_tensors(space: Space, function: Function, operands: list[Any]) -> Value | None:
    """What a tensor has that is computed of the operands; None where Python may raise an error, or gives another."""
    of_two = _OF_TENSORS.get(function)
    if of_two is None or (function in DIVISIONS and (operands[1].symbolic or operands[1].host <= 0)):
        return None
    return number_in(space, of_two(space, *in_tensors(space, operands)))


def _by_method(name: str) -> OfTwo:
    return lambda space, one, other: record_method(space, name, one, other)


def _remainder(space: Space, divided: Any, divisor: Any) -> Any:
    """What `%` gives of a positive divisor: never -0.0."""
    return record_method(space, "add", record_method(space, "remainder", divided, divisor), 0.0)


def _quotient(space: Space, divided: Any, divisor: Any) -> Any:
    """What `//` gives."""
    found = quotient(functools.partial(record_method, space), divided, divisor)
    return record_method(space, "copysign", found, record_method(space, "div", divided, divisor))  # -0.0 // 3


#: what computes in tensors what a function does of two numbers
_OF_TENSORS: dict[Function, OfTwo] = {
    **{getattr(operator, name): _by_method(name) for name in ("lt", "le", "eq", "ne", "gt", "ge", "add", "sub", "mul")},
    operator.truediv: _by_method("div"),
    operator.mod: _remainder,
    operator.floordiv: _quotient,
}


def in_tensors(space: Space, numbers: Iterable[Value]) -> list[Any]:
    """Tensors of numbers, which hold all that floats are, recorded.

    Of a float that varies AOTAutograd makes a tensor only where it is to compute with it.
    """

    def made(number: Any) -> Any:
        if number.symbolic and (number.cls is float or not is_of_ints(number)):
            return held(space.trace.recorder, number)
        return record_function(space, torch.scalar_tensor, number, dtype=torch.float64)

    return [made(number.force()) for number in numbers]


def number_in(space: Space, tensor: Value) -> Value:
    """The number in a tensor, recorded: a symbol of its own."""
    return space.call(space.getattr(tensor, "item"), [], {}).force()
