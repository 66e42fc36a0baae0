"""Ints made of symbolic floats and conditions: `int(rate)`, `round(rate)`, `math.ceil(rate)`, `int(n > 1)`.

    steps = int(x.norm().item() * 100)      # an int that the graph computes of a float that it reads
    return x * steps

To torch such an int is an expression over the float, which AOTAutograd saves for the backward pass without the float,
and Inductor computes anew in a kernel. So it passes through a tensor, and is a symbol of its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch.fake.metadata import hint_of
from stator.pytorch.shapes.computed import compute_again, depends_on_draws
from stator.pytorch.shapes.floats.real_numbers import is_simplified
from stator.pytorch.shapes.symbols import as_integer, compute
from stator.pytorch.shapes.unbacked import symbols_of
from stator.pytorch.tensors.lowering import Call, Operand
from stator.space.deferred import DeferredNumber

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.protocol import Handler
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["as_symbol", "is_of_ints", "models", "number_of", "recorded_with", "tensor_of", "to_whole", "whole_number"]


def whole_number(space: Space, function: Function, number: Any, reader: Function = torch.Tensor.item) -> Value:
    """The int that `function` makes of a symbolic number, recorded; by the `reader` messages tell where it is from."""
    whole: Any = as_integer(space, number) if number.cls is bool else compute(space, function, [number])
    if number.cls is int or not whole.symbolic or hint_of(whole.number) is not None:
        return whole
    return as_symbol(space, whole, torch.int64, reader)


def as_symbol(space: Space, number: Any, dtype: torch.dtype, reader: Function = torch.Tensor.item) -> Any:
    """A number that the graph computes, as a symbol of its own."""
    return number_of(space, tensor_of(space, number, dtype), reader)


def tensor_of(space: Space, number: Any, dtype: torch.dtype) -> Any:
    """A tensor of a number that the graph computes, recorded."""
    return recorded_with(space, Call(torch.scalar_tensor, "call_function", torch.scalar_tensor), number, dtype=dtype)


def number_of(space: Space, tensor: Any, reader: Function = torch.Tensor.item) -> Any:
    """The number that a tensor has, recorded: it belongs to the graph. The `reader` is what the program has called."""
    number = recorded_with(space, Call(torch.Tensor.item, "call_method", "item"), tensor)
    if number.symbolic and number.operation is not None:
        number.operation.called = reader
    return number


def recorded_with(space: Space, call: Call, operand: Any, **options: object) -> Any:
    """What a call of one operand, and of options that are known, gives."""
    call.args, call.kwargs = (Operand(0),), options
    call.operands, call.metas = [operand], [operand.meta]
    return space.trace.recorder.record(call)


def to_whole(function: Function) -> Handler:
    """The model of a function that makes an int of a number: of a float that existed, or was drawn, CPython makes it
    before the graph runs, as backends make constants of floats. Of a float of sizes it stays an expression over them,
    unless torch has simplified the float."""
    of_symbols = torch.sym_int if function is int else function

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        value: Any = args[0].force()
        if not value.symbolic or value.cls is int:
            return value if value.symbolic else None
        if value.cls is bool and hint_of(value.number) is not None:
            return None  # it is assumed
        is_whole = is_of_ints(value) and not is_simplified(space.trace.recorder, value)
        is_computed_before = value.source is not None or depends_on_draws(value) or not is_whole
        again = compute_again(space, function, [value]) if is_computed_before else None
        return whole_number(space, of_symbols, value) if again is None else again

    return handler


def _to_float(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`float(number)` of a symbol."""
    value: Any = args[0].force()
    if value.symbolic and value.cls is bool and hint_of(value.number) is None:
        return as_symbol(space, whole_number(space, torch.sym_int, value), torch.float32)
    if value.symbolic and value.cls is int and hint_of(value.number) is None and not value.recorder.keeps_order:
        return as_symbol(space, value, torch.float64)  # to a backend it has 32 bits
    return compute(space, torch.sym_float, [value]) if value.symbolic else None


def is_of_ints(value: Any) -> bool:
    """Whether a number is computed of sizes and ints alone."""
    return all(symbol.is_integer for symbol in symbols_of(value.number))


def _round(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`round(number)` of a symbolic float, which is an int, and `round(number, digits)`, which is a float."""
    values = [arg.force() for arg in args]
    if len(values) == 1:
        return to_whole(round)(space, values, kwargs)
    if len(values) != 2 or not values[0].symbolic or type(space.known(values[1])) is not int:
        return None
    return DeferredNumber(float, round, values)


def models() -> dict[int, Handler]:
    """The models of conversions by the ids of the host callables, for calls.call_hook."""
    found = {id(float.__dict__[name]): to_whole(int) for name in ("__int__", "__trunc__")}
    for name in ("__int__", "__index__", "__pos__", "__trunc__", "__floor__", "__ceil__"):
        found[id(int.__dict__[name])] = to_whole(int)
    for cls in (int, float):
        found[id(cls.__dict__["__float__"])] = _to_float
    for function in (math.ceil, math.floor):
        found[id(float.__dict__[f"__{function.__name__}__"])] = to_whole(function)
    found[id(float.__dict__["__round__"])] = _round
    return found
