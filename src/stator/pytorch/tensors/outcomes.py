"""Branches on what is computed of integers in existing tensors: guards compute it too.

    if (input_ids == pad_id).any():

Neither side of such a branch is a mistake, so none may be assumed and checked when the graph has run. But what it
depends on is there before anything has been done, so a guard can tell which way it goes. Integers steer programs
(masks, tokens, lengths, counters), and most branches on them go one way; one that has gone both ways breaks the graph.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from stator.guards.guard import Predicate
from stator.interp.branches import OUTCOME_HOOKS
from stator.pytorch import internals
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.fake.metadata import hint_of, is_describable
from stator.pytorch.shapes import dynamism, symbols
from stator.pytorch.shapes.symbols import SymValue
from stator.pytorch.state.global_state import computes_alike
from stator.pytorch.tensors.known import is_unwritten
from stator.pytorch.tensors.lowering import Operand, fill
from stator.pytorch.tensors.tensor import TensorValue

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation
    from stator.pytorch.types import Args, Function, Kwargs
    from stator.space.interfaces import Trace
    from stator.space.value import Value

    #: a call: the function, its arguments with operands in them, and where each operand is found
    Step: TypeAlias = tuple[Function, Args, Kwargs, list["Place"]]

__all__ = ["install"]

#: elements of a tensor, operations, and branches in one trace, that are worth a guard
_MOST_ELEMENTS = 1024
_MOST_STEPS = 16
_MOST_BRANCHES = 16
#: functions of numbers that give the same for symbols
_ARITHMETIC = {getattr(operator, name) for name in (*symbols.ARITHMETIC, *symbols.COMPARISONS)} | {torch.sym_not}


class Place:
    """Where a value is found: among the tensors a recipe begins with, or in a result; and the text it is shown as."""

    def __init__(self, index: int, text: str, path: tuple[Any, ...] = (), *, given: bool = False) -> None:
        self.index = index
        self.text = text
        self.path = path
        self.given = given

    def find(self, tensors: tuple[torch.Tensor, ...], results: list[Any]) -> Any:
        """The value."""
        found = tensors[self.index] if self.given else results[self.index]
        for step in self.path:
            found = found[step]
        return found


class Recipe:
    """How a condition is computed from existing tensors."""

    def __init__(self, steps: list[Step], outcome: Place) -> None:
        self.steps = steps
        self.outcome = outcome

    def truth(self, tensors: tuple[torch.Tensor, ...]) -> bool:
        """The truth of the condition, whatever modes are on."""
        if internals.len_dispatch_stack():
            with internals.disable_current_modes():
                return self.truth(tensors)
        results: list[Any] = []
        with internals.DisableTorchFunction():
            for function, args, kwargs, places in self.steps:
                operands = [place.find(tensors, results) for place in places]
                results.append(function(*fill(args, operands), **fill(kwargs, operands)))
            return bool(self.outcome.find(tensors, results))


class _Goes:
    """Whether a condition is what it was when the trace was made."""

    def __init__(self, recipe: Recipe, truth: bool) -> None:
        self.recipe = recipe
        self.expected = truth

    def __call__(self, *tensors: torch.Tensor) -> bool:
        return self.recipe.truth(tensors) is self.expected


class _Cook:
    """Finds the recipe of one condition."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.steps: list[Step] = []
        self.given: list[TensorValue] = []
        self.places: dict[object, Place | None] = {}

    def place(self, value: Value) -> Place | None:
        """Where a value is found; None if it is not known how it is computed from integers."""
        if isinstance(value, SymValue):
            return self.number(value)
        if not isinstance(value, TensorValue) or value.root in self.recorder.effects.rewritten:
            return None
        if value.operation is None:
            return self.existing(value)
        return self.part(value, value.operation) if _is_small(value) else None

    def part(self, value: TensorValue | SymValue, operation: Operation) -> Place | None:
        """Where what an operation has made is found."""
        if operation not in self.places:
            self.places[operation] = self.operation(operation)
        made = self.places[operation]
        return made and Place(made.index, made.text, value.path)

    def operation(self, operation: Operation) -> Place | None:
        if operation.effectful or not computes_alike(operation.state, self.recorder.state.entry_key):
            return None
        if "empty" in getattr(operation.function, "__name__", "empty"):
            return None
        return self.step(operation.function, operation.args, operation.kwargs, operation.operands)

    def number(self, value: SymValue) -> Place | None:
        """Where a number that is in a tensor, or is computed from such numbers, is found."""
        if value.operation is not None:
            return self.part(value, value.operation)
        node = None if value.source is not None else value.node
        if (
            node is None
            or node.op != "call_function"
            or getattr(operator, node.target.__name__, None) is not node.target
        ):
            return None
        operands: list[Any] = [self.recorder.nodes.values.get(arg) for arg in node.all_input_nodes]
        if None in operands:
            return None
        indices = {arg: Operand(i) for i, arg in enumerate(node.all_input_nodes)}
        args = tuple(indices.get(arg, arg) if isinstance(arg, torch.fx.Node) else arg for arg in node.args)
        return self.step(node.target, args, {}, operands)

    def step(self, function: Function, args: Args, kwargs: Kwargs, operands: list[Value]) -> Place | None:
        """Add a call; None where an operand is not known."""
        places = [self.place(operand) for operand in operands]
        if None in places or len(self.steps) == _MOST_STEPS:
            return None
        self.steps.append((function, args, kwargs, places))  # type: ignore[arg-type]
        shown = fill(args, [place.text for place in places if place])
        return Place(len(self.steps) - 1, f"{describe_callable(function)}{shown}".replace("'", ""))

    def existing(self, value: TensorValue) -> Place | None:
        """Where a tensor of integers is found that existed before the trace, and has not been written since."""
        source = value.source
        if source is None or value.cls is not torch.Tensor or value.dtype.is_floating_point or value.dtype.is_complex:
            return None
        if not (is_describable(value.host) and _is_small(value) and is_unwritten(self.recorder, value)):
            return None
        if value not in self.places:
            self.places[value] = Place(len(self.given), source.expr(), given=True)
            self.given.append(value)
        return self.places[value]


def _is_small(value: TensorValue) -> bool:
    """Whether a tensor is worth computing before each call."""
    if value.device.type != "cpu" or value.requires_grad:
        return False
    sizes = [hint_of(size) for size in value.shape]
    return None not in sizes and math.prod(sizes) <= _MOST_ELEMENTS


class _Branches:
    """The branches of one trace that guards compute."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.count = 0

    def outcome(self, condition: TensorValue | SymValue) -> bool | None:
        """Which way a branch goes; None where no guard can tell."""
        recorder: Recorder = self.trace.recorder
        if recorder.nodes.graph is not recorder.nodes.whole or self.count == _MOST_BRANCHES:
            return None
        cook = _Cook(recorder)
        place = cook.place(condition)
        if place is None or not cook.given:
            return None
        recipe = Recipe(cook.steps, place)
        try:
            truth = recipe.truth(tuple(value.host for value in cook.given))
        except Exception:
            return None  # the program shall find out itself
        if not dynamism.outcome_stays(self.trace, place.text, truth):
            return None
        self.count += 1
        sources: Any = tuple(value.source for value in cook.given)
        self.trace.guard(Predicate(sources, _Goes(recipe, truth), f"bool({place.text}) is {truth}"))
        return truth


def _outcome(trace: Trace, condition: Value) -> bool | None:
    """Which way a branch on a tensor, or on a number in one, goes (see branches.OUTCOME_HOOKS)."""
    if not isinstance(condition, TensorValue | SymValue):
        return None
    return trace.extension(_Branches).outcome(condition)


def install() -> None:
    """Register the hook."""
    OUTCOME_HOOKS.append(_outcome)
