"""Numbers that are computed again at each call, before the graph runs, from those that the program was given.

    width = torch.zeros(math.isqrt(x.size(0)))      torch knows no symbol for the root of a whole number

CPython itself computes them, so they are what the program would get, and any pure function will do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from stator.guards.guard import Equals
from stator.guards.intern import CallInputs
from stator.guards.source import CallSource, Source
from stator.pytorch.fake.metadata import expression_of, hint_of, is_symbol
from stator.pytorch.shapes.dynamism import is_fixed
from stator.space.value import Constant, NotKnown, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Function, Host, Number
    from stator.space.space import Space

__all__ = ["compute_again", "computed_number", "computed_sizes", "existing_symbols"]

_NO_CALL = CallInputs(None, ())
_PAST_64_BITS = 1 << 63


class _Formula:
    """A number as Python text: over existing numbers, which have names n0, n1 …, with functions f0, f1 …"""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.sources: dict[Source, str] = {}
        self.functions: dict[Function, str] = {}

    def call(self, function: Function, args: Sequence[Any]) -> str:
        """A call of a function; raises NotKnown where an argument isn't made of existing numbers."""
        name = self.functions.setdefault(function, f"f{len(self.functions)}")
        return f"{name}({', '.join(map(self._number, args))})"

    def _number(self, value: Any) -> str:
        if not value.symbolic:
            return _shown(value)
        if value.source is not None:
            return self._name(value.source)
        node = value._node
        if node is None or node.op != "call_function":
            return self.expression(value.number, value)
        values = self.recorder.nodes.values
        return self.call(
            node.target, [values[arg] if isinstance(arg, torch.fx.Node) else Constant(arg) for arg in node.args]
        )

    def expression(self, number: Number, value: Value | None = None) -> str:
        """A size that an operation's result has: as an expression over symbols, which is exact for whole numbers."""
        expression = expression_of(number) if is_symbol(number) else None
        if expression is None:
            return repr(number)
        symbols = existing_symbols(self.recorder, number)
        if symbols is None:
            raise NotKnown(value)
        names = {name: self._name(known.source) for name, known in symbols.items()}  # type: ignore[arg-type]
        text = str(expression)
        return f"(lambda {', '.join(names)}: {text})({', '.join(names.values())})"

    def _name(self, source: Source) -> str:
        return self.sources.setdefault(source, f"n{len(self.sources)}")

    def over(self, text: str) -> tuple[Source, Callable[[Host], Host]]:
        """The source that all numbers are found from, and what computes the text from its object."""
        names = {name: function for function, name in self.functions.items()}
        compute = eval(f"lambda {', '.join(self.sources.values())}: {text}", {"__builtins__": {}, **names, **_NUMBERS})
        return _over(list(self.sources), compute)


def existing_symbols(recorder: Recorder, number: Number) -> dict[str, Value] | None:
    """The existing numbers, by the names of their symbols, that a whole one is a polynomial over; None for others."""
    expression = expression_of(number)
    if expression is None or not isinstance(number, torch.SymInt) or not expression.is_polynomial():
        return None
    found = {s.name: recorder.shapes.symbols.get(s) for s in sorted(expression.free_symbols, key=str)}
    return None if any(known is None or known.source is None for known in found.values()) else found


def compute_again(space: Space, function: Function, args: list[Value]) -> Value | None:
    """The number that a pure function which takes no symbols gives for some; None where it can't be computed before
    the graph runs, or has no answer for these."""
    shapes = space.trace.recorder.shapes
    formula = _Formula(space.trace.recorder)
    try:
        text = formula.call(function, args)
        result = function(*[hint_of(arg.number) if arg.symbolic else arg.as_host(space) for arg in args])  # type: ignore[attr-defined]
        key = (text, *formula.functions, *formula.sources)
        known: Value | None = shapes.elements.get(key)
        if known is None:
            base, compute = formula.over(text)
            known = _existing(space, result, CallSource(compute, base, _name_of(function)))
    except Exception:
        return None
    if known is not None:
        shapes.elements[key] = known
    return known


def computed_number(space: Space, result: Host, sources: list[Source], compute: Function, text: str) -> Value | None:
    """The number that `compute` gives for existing numbers, now `result`; None where it cannot be had."""
    try:
        base, function = _over(sources, compute)
    except NotKnown:
        return None
    return _existing(space, result, CallSource(function, base, text.replace(base.expr(), "{}")))


def _over(sources: list[Source], compute: Function) -> tuple[Source, Callable[[Host], Any]]:
    """The source that all numbers are found from, and what computes with them from its object."""
    base = _shared(sources)
    steps = [_steps(base, source) for source in sources]
    return base, lambda host: compute(*[_follow(host, path) for path in steps])


def _existing(space: Space, result: Host, source: Source) -> Value | None:
    """A number that is there when the graph runs: a symbol, where it can be one, or guarded to be what it is now."""
    if type(result) not in _ANSWERS or result != result:
        return None
    varies = type(result) in (int, float) and result not in (0, 1) and _is_small(result)
    if varies and not is_fixed(space.trace, source):
        return space.trace.recorder.shapes.number(result, source)
    space.trace.guard(Equals(source, result))
    return Constant(result)


def computed_sizes(
    recorder: Recorder, numbers: Sequence[Number]
) -> tuple[Source, Callable[[Host], tuple[int, ...]]] | None:
    """What computes the numbers, and the source of what it is to be given; None where nothing is enough."""
    formula = _Formula(recorder)
    try:
        return formula.over(f"({', '.join(map(formula.expression, numbers))},)")
    except NotKnown:
        return None


#: what a computed number may be: all else is asked of the number that the symbol stands for
_ANSWERS = (bool, int, float, str)
_NUMBERS = {"inf": math.inf, "nan": math.nan}


def _is_small(number: float) -> bool:
    return -_PAST_64_BITS <= number < _PAST_64_BITS if type(number) is int else math.isfinite(number)


def _shown(value: Any) -> str:
    if value.constant and value.cls in (bool, int, float):
        return f"({value.as_host(None)!r})"
    raise NotKnown(value)


def _name_of(function: Function) -> str:
    module = getattr(function, "__module__", None)
    return f"{module}.{function.__name__}" if module else function.__qualname__


def _shared(sources: list[Source]) -> Source:
    """The last step that the paths have in common; raises NotKnown where they begin apart."""
    chains = [list(source.chain()) for source in sources]
    for step in chains[0]:
        if all(step in chain for chain in chains):
            return step
    raise NotKnown(None)


def _steps(base: Source, source: Source) -> list[Source]:
    chain = list(source.chain())
    return chain[: chain.index(base)][::-1]


def _follow(host: Host, steps: list[Source]) -> Host:
    for step in steps:
        host = step.fetch(host, _NO_CALL)
    return host
