"""The guard program in pure Python: its specification, the check of the strict mode, and the voice of failures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .base import Guard
from .intern import Output, sources_of
from .source import CallInputs, LoadError, Source

__all__ = ["ReferenceProgram"]


class ReferenceProgram:
    """Checks guards one after the other, loading from the inputs of a call."""

    __slots__ = ("guards", "outputs")

    def __init__(self, guards: tuple[Guard, ...], outputs: tuple[Output, ...]) -> None:
        self.guards = guards
        self.outputs = outputs

    def run(self, func: object, args: tuple[object, ...]) -> tuple[object, ...] | None:
        """The outputs, or None if a guard fails or an output cannot be loaded."""
        call = CallInputs(func, args)
        if not all(guard.check(call) for guard in self.guards):
            return None
        try:
            return tuple(_load_output(call, output) for output in self.outputs)
        except LoadError:
            return None

    def failure(self, func: object, args: tuple[object, ...]) -> str | None:
        """The first guard that fails, explained; None if all hold."""
        call = CallInputs(func, args)
        guard = self.failing(call)
        if guard is not None:
            return f"{guard}: {guard.explain(call).text}{guard.at()}"
        for source in (source for output in self.outputs for source in sources_of(output)):
            try:
                call.get(source)
            except LoadError as error:
                return f"{source.expr()}: {error}"
        return None

    def failing(self, call: CallInputs) -> Guard | None:
        """The first guard that does not hold."""
        return next((guard for guard in self.guards if not guard.check(call)), None)

    def disagreement(self, func: object, args: tuple[object, ...], outputs: tuple[object, ...] | None) -> str | None:
        """How its verdict differs from ``outputs`` (None: failed), or None."""
        own = self.run(func, args)
        if own is None or outputs is None:
            if own is outputs:
                return None
            passes = outputs is None
            return "only the reference passes" if passes else f"only the reference fails: {self.failure(func, args)}"
        other = next(self.others(own, outputs), None)
        return None if other is None else f"{other.expr()} is handed over as another object"

    def others(self, outputs: tuple[object, ...], earlier: tuple[object, ...]) -> Iterator[Source]:
        """The sources where two runs have found different objects, or different numbers where they make new ones."""
        for output, mine, theirs in zip(self.outputs, outputs, earlier, strict=True):
            pairs = zip(sources_of(output), _as_tuple(output, mine), _as_tuple(output, theirs), strict=True)
            for source, a, b in pairs:
                if a is not b and (all(step.is_repeatable for step in source.chain()) or _is_another_number(a, b)):
                    yield source


def _is_another_number(number: Any, other: object) -> bool:
    if type(number) not in (int, float):
        return False
    return type(other) is not type(number) or not (number == other or (number != number and other != other))


def _load_output(call: CallInputs, output: Output) -> object:
    if isinstance(output, tuple):
        return tuple(map(call.get, output))
    return call.get(output)


def _as_tuple(output: Output, value: Any) -> tuple[object, ...]:
    return value if isinstance(output, tuple) else (value,)
