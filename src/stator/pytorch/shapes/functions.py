"""Functions that ask about numbers which may be symbols, or combine such numbers without asking.

`guard_or_false(n == 0)` and its like, which torch and libraries are full of, answer what they are named for where a
number is known only when the graph runs. Where it stands for a size they answer as for the number it is, under a guard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.models.numbers.number_text import METHODS, shown_later
from stator.pytorch import internals
from stator.pytorch.shapes import symbols, whole
from stator.pytorch.shapes.assertions import Assertions
from stator.pytorch.shapes.floats import exact, finite, powers
from stator.pytorch.shapes.symbols import SymValue, compute, decide
from stator.pytorch.tensors.recording import record_method
from stator.pytorch.tensors.subclass import dispatched
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import EXTREME_HOOKS, FALSE, TRUE, Handler, bad_call, register
from stator.space.value import Constant, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function, Host
    from stator.space.space import Space

__all__ = ["install", "methods_of_numbers", "model_of"]


def methods_of_numbers() -> dict[int, Handler]:
    """The models of the methods of numbers, for those that are symbols, by the ids of the host callables."""
    return exact.exactly(symbols.models() | powers.models()) | _texts() | whole.models() | finite.models()


def _texts() -> dict[int, Handler]:
    """The models of methods that show a number: for a symbol the text waits for the graph."""

    def handler_of(function: Function) -> Handler:
        def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
            values = [arg.force() for arg in args]
            return shown_later(space, function, values) if isinstance(values[0], SymValue) else None

        return handler

    return {method: handler_of(function) for method, function in METHODS.items()}


def model_of(host: Host) -> Handler | None:
    """The model of a function written in Python, found by its name: its module may not be loaded yet."""
    if hasattr(host, "__wrapped__"):
        return None  # it warns that it is deprecated, and calls what it wraps
    models = _MODELS.get(host.__module__)
    return None if models is None else models.get(host.__name__)


def _answered(otherwise: bool) -> Handler:
    """The model of a function of a condition that answers `otherwise` where nobody knows it."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if len(args) != 1 or kwargs or not _is_condition(args[0]):
            return None
        return _known_or(space, args[0].force(), Constant(otherwise))

    return handler


def _known_or(space: Space, condition: Value, otherwise: Value) -> Value:
    try:
        return Constant(decide(space.trace, condition))
    except Unsupported:
        return otherwise


def _guard_or(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`_guard_or(condition, default)`."""
    if len(args) != 2 or kwargs or not _is_condition(args[0]):
        return None
    return _known_or(space, args[0].force(), args[1])


def _expect_true(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`expect_true(condition)`, which `torch._check` asks: true, or the program is wrong."""
    if not args or not _is_condition(args[0]):
        return None
    condition = args[0].force()
    try:
        return Constant(decide(space.trace, condition))
    except Unsupported:
        if not space.trace.extension(Assertions).assume(condition):
            raise
    return TRUE


def _guard_size_oblivious(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`guard_size_oblivious(condition)`: sizes are taken to be two or more."""
    if len(args) != 1 or kwargs or not _is_condition(args[0]):
        return None
    from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

    condition = args[0].force()
    try:
        return Constant(condition.number.node.guard_size_oblivious("", 0))  # type: ignore[attr-defined]
    except GuardOnDataDependentSymNode:
        return None


def _has_hint(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`has_guarding_hint(number)`: whether it may be decided on."""
    return FALSE if len(args) == 1 and not kwargs and _is_open(args[0].force()) else None


def _is_condition(value: Value) -> bool:
    value = value.force()
    return isinstance(value, SymValue) and value.cls is bool


def _combined(function: Function) -> Handler:
    """The model of a function of torch that takes symbols as it takes numbers."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        values = [arg.force() for arg in args]
        if kwargs or not any(value.symbolic for value in values) or not all(map(_is_number, values)):
            return None
        return compute(space, function, values)

    return handler


def _is_number(value: Value) -> bool:
    return value.symbolic or (type(value) is Constant and value.cls in (int, float, bool))


def _better(space: Space, symbol: str, item: Value, best: Value) -> Value | None:
    """The better of two numbers that are integers both or floats both, without a branch: a size has no other entry
    for it, and of one that only the graph knows nobody could learn which of the two it is, and so of which type."""
    if item.cls is not best.cls or not (item.symbolic or best.symbolic) or not (_is_number(item) and _is_number(best)):
        return None
    if item.cls is int:
        return compute(space, torch.sym_max if symbol == ">" else torch.sym_min, [best, item]).force()
    if item.cls is not float or not (_is_open(item) or _is_open(best)):
        return None
    # by an operation on tensors: of NaN, symbols know less than Python does
    tensors = exact.in_tensors(space, (item, best))
    condition = record_method(space, "gt" if symbol == ">" else "lt", *tensors)
    return exact.number_in(space, record_method(space, "where", tensors[0], condition, tensors[1]))


def _is_open(value: Value) -> bool:
    return isinstance(value, SymValue) and value.number.node.hint is None


_COMBINING = ("sym_float", "sym_ite", "sym_max", "sym_min", "sym_not")
#: by module and name
_MODELS: dict[str, dict[str, Handler]] = {
    "torch": {"sym_int": whole.to_whole(int), **{name: _combined(getattr(torch, name)) for name in _COMBINING}},
    "torch.fx.experimental.symbolic_shapes": {
        "_guard_or": _guard_or,
        "expect_true": _expect_true,
        "guard_size_oblivious": _guard_size_oblivious,
        "has_guarding_hint": _has_hint,
        "statically_known_false": _answered(False),
        "statically_known_true": _answered(False),
    },
}


def _sizes(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`torch._shape_as_tensor(x)`: the tensor of its sizes; the kernel writes them where fake tensors have no data."""
    function = internals.shape_as_tensor
    overridden = dispatched(space, function, args, kwargs)
    if overridden is not None:
        return overridden
    tensor = args[0].force() if len(args) == 1 and not kwargs else None
    if not isinstance(tensor, TensorValue):
        return bad_call(space, function, args, kwargs)
    sizes = space.new_list(space.unpack(space.getattr(tensor, "shape")))
    options = {"dtype": space.fresh(torch.int64), "device": Constant("cpu")}
    return space.call(space.existing(torch.tensor), [sizes], options)


def install() -> None:
    """Register the hook, and a model."""
    EXTREME_HOOKS.append(_better)
    register(internals.shape_as_tensor, _sizes)
