"""What is computed of integers, and of floats that objects hold, and decides what the program does: guards do it too.

    if (input_ids == pad_id).any():
    expert = self.experts[f"expert_{index}"]
    for alpha in solver.tableau.alpha: if alpha == 1.0:

Neither side of such a branch is a mistake, so none may be assumed and checked when the graph has run. But what it
depends on is there before anything has been done, so a guard can tell which way it goes. Integers steer programs
(masks, tokens, lengths, counters), and so do the floats that objects hold (coefficients, tolerances); those that are
passed are data. What the program has written to such a tensor before the branch (`self.n += 1`) a guard writes to a
copy. Most such branches go one way; one that has gone both ways breaks the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.guards.guard import FOR_BRANCHES, FOR_NUMBERS, Predicate
from stator.guards.source import AttrSource, GlobalSource
from stator.pytorch.shapes import dynamism
from stator.pytorch.shapes.computed import depends_on_draws
from stator.pytorch.shapes.symbols import SymValue
from stator.pytorch.shapes.unbacked import symbols_of
from stator.pytorch.tensors.known import is_written_alone
from stator.pytorch.tensors.recipes import Search
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import OUTCOME_HOOKS

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.tensors.recipes import Recipe
    from stator.pytorch.types import Function, Host, Number
    from stator.space.interfaces import Trace
    from stator.space.value import Value

__all__ = ["install"]

#: operations, elements of a tensor, and outcomes in one trace, that are worth a guard
_MOST = 32, 1 << 14
_MOST_OUTCOMES = 16


class _Gives:
    """Whether a function gives for a value what it gave when the trace was made."""

    def __init__(self, recipe: Recipe, function: Function, more: tuple[Host, ...], expected: Host) -> None:
        self.recipe = recipe
        self.function = function
        self.more = more
        self.expected = expected

    def __call__(self, *given: torch.Tensor | Number) -> bool:
        return bool(self.function(self.recipe.run(given), *self.more) == self.expected)


class _Outcomes:
    """What guards compute for one trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.count = 0

    def outcome(self, function: Function, value: TensorValue | SymValue, more: tuple[Host, ...]) -> Host:
        """What a function gives for a value; None where no guard can tell."""
        recorder: Recorder = self.trace.recorder
        if recorder.nodes.graph is not recorder.nodes.whole or self.count == _MOST_OUTCOMES:
            return None
        search = Search(recorder, recorder.state.entry_key, self.begins, _MOST)
        recipe = search.recipe(value)
        if recipe is None or not search.given:
            return None
        found = search.now(recipe)
        if found is None or (isinstance(found, torch.Tensor) and found.numel() != 1):
            return None
        result, text = function(found, *more), recipe.outcome.text
        if not dynamism.outcome_stays(self.trace, f"{function.__name__} of {text}", result):
            return None
        self.count += 1
        sources: Any = tuple(value.source for value in search.given)
        remedy = FOR_BRANCHES if function is bool else FOR_NUMBERS
        told = _text(function, text, result)
        self.trace.guard(Predicate(sources, _Gives(recipe, function, more, result), told, remedy))
        return result

    def begins(self, value: TensorValue | SymValue) -> bool:
        """Whether it is a number that is not marked as unknown, nor drawn anew in each call, or a tensor that steers,
        with what has been written."""
        recorder: Recorder = self.trace.recorder
        if isinstance(value, SymValue):
            return not depends_on_draws(value) and not any(
                map(recorder.shapes.env.is_unbacked_symint, symbols_of(value.number))
            )
        return value.cls is torch.Tensor and _steers(value) and is_written_alone(recorder, value)


def _text(function: Function, value: str, result: Host) -> str:
    """What a guard asks, as the program might write it."""
    if function is bool:
        return value if result else f"not ({value})"
    return f"{function.__name__}({value}) == {result!r}"


def _steers(value: TensorValue) -> bool:
    """Whether it holds integers; or an object or a module holds it, and not just a variable."""
    if not (value.dtype.is_floating_point or value.dtype.is_complex):
        return True
    return value.source is not None and any(
        isinstance(step, AttrSource | GlobalSource) for step in value.source.chain()
    )


def _outcome(trace: Trace, function: Function, value: Value, more: tuple[Host, ...]) -> Host:
    """What a function gives for a tensor, or for a number in one (see protocol.OUTCOME_HOOKS)."""
    if not isinstance(value, TensorValue | SymValue):
        return None
    return trace.extension(_Outcomes).outcome(function, value, more)


def install() -> None:
    """Register the hook."""
    OUTCOME_HOOKS.append(_outcome)
