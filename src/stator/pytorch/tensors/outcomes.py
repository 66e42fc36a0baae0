"""Branches on what is computed of integers, and of floats that objects hold, in tensors: guards compute it too.

    if (input_ids == pad_id).any():
    for alpha in solver.tableau.alpha: if alpha == 1.0:

Neither side of such a branch is a mistake, so none may be assumed and checked when the graph has run. But what it
depends on is there before anything has been done, so a guard can tell which way it goes. Integers steer programs
(masks, tokens, lengths, counters), and so do the floats that objects hold (coefficients, tolerances); those that are
passed are data. Most such branches go one way; one that has gone both ways breaks the graph.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch

from stator.guards.guard import Predicate
from stator.interp.branches import OUTCOME_HOOKS
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.shapes import dynamism, symbols
from stator.pytorch.shapes.symbols import SymValue
from stator.pytorch.state.global_state import computes_alike
from stator.pytorch.tensors.known import is_held, is_small, is_unwritten
from stator.pytorch.tensors.lowering import Operand, fill
from stator.pytorch.tensors.recipes import Place, Recipe
from stator.pytorch.tensors.tensor import TensorValue

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.tensors.recipes import Step
    from stator.pytorch.traced import Operation
    from stator.pytorch.types import Args, Function, Kwargs
    from stator.space.interfaces import Trace
    from stator.space.value import Value

__all__ = ["install"]

#: operations, and branches in one trace, that are worth a guard
_MOST_STEPS = 32
_MOST_BRANCHES = 16
#: packages whose functions are called by guards
_PURE = ("torch", "stator", "_operator")
#: functions of numbers that give the same for symbols
_ARITHMETIC = {getattr(operator, name) for name in (*symbols.ARITHMETIC, *symbols.COMPARISONS)} | {torch.sym_not}


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
        return self.part(value, value.operation) if is_small(value) else None

    def part(self, value: TensorValue | SymValue, operation: Operation) -> Place | None:
        """Where what an operation has made is found."""
        if operation not in self.places:
            self.places[operation] = self.operation(operation)
        made = self.places[operation]
        return made and Place(made.index, f"{made.text}{''.join(f'[{step}]' for step in value.path)}", value.path)

    def operation(self, operation: Operation) -> Place | None:
        if operation.effectful or not computes_alike(operation.state, self.recorder.state.entry_key):
            return None
        if "empty" in getattr(operation.function, "__name__", "empty") or not _is_torchs(operation.function):
            return None
        return self.step(operation.function, operation.args, operation.kwargs, operation.operands)

    def number(self, value: SymValue) -> Place | None:
        """Where a number that is in a tensor, or is computed from such numbers, is found."""
        if value.operation is not None:
            return self.part(value, value.operation)
        if value.source is not None:
            return None
        node = value.node
        function: Any = node.target if node.op == "call_function" else None
        if function not in _ARITHMETIC:
            return None
        operands: list[Any] = [self.recorder.nodes.values.get(arg) for arg in node.all_input_nodes]
        if None in operands:
            return None
        indices = {arg: Operand(i) for i, arg in enumerate(node.all_input_nodes)}
        args = tuple(indices.get(arg, arg) if isinstance(arg, torch.fx.Node) else arg for arg in node.args)
        return self.step(function, args, {}, operands)

    def step(self, function: Function, args: Args, kwargs: Kwargs, operands: list[Value]) -> Place | None:
        """Add a call; None where an operand is not known."""
        places: list[Place] = []
        for operand in operands:
            place = self.place(operand)
            if place is None:
                return None
            places.append(place)
        if len(self.steps) == _MOST_STEPS:
            return None
        self.steps.append((function, args, kwargs, places))
        shown = fill(args, [place.text for place in places])
        return Place(len(self.steps) - 1, f"{describe_callable(function)}{shown}".replace("'", ""))

    def existing(self, value: TensorValue) -> Place | None:
        """Where a tensor that steers is found, which existed before the trace and has not been written since."""
        source = value.source
        if source is None or value.cls is not torch.Tensor or not (_is_integral(value) or is_held(value)):
            return None
        if not (is_small(value) and is_unwritten(self.recorder, value)):
            return None
        if value not in self.places:
            self.places[value] = Place(len(self.given), source.expr(), given=True)
            self.given.append(value)
        return self.places[value]


def _is_integral(value: TensorValue) -> bool:
    return not (value.dtype.is_floating_point or value.dtype.is_complex)


def _is_torchs(function: Function) -> bool:
    """Whether a function is torch's own: one of a library, or of the program, might show how often it is called."""
    module = getattr(function, "__module__", None) or "torch"
    return module == "torch._ops.aten" or (module.split(".")[0] in _PURE and not module.startswith("torch._ops"))


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
