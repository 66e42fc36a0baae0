"""Numbers that are computed again at each call, before the graph runs, from those that the program was given.

    width = torch.zeros(math.isqrt(x.size(0)))      torch knows no symbol for the root of a whole number

CPython itself computes them, so they are what the program would get, and any pure function will do.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.guards.guard import Equals, Predicate, TypeIs
from stator.guards.source import CallSource, Source
from stator.models.containers.selection import key_text, select
from stator.models.numbers.draws import is_drawn
from stator.models.numbers.ways import are_alike, may_assume
from stator.pytorch.fake.metadata import DIVISIONS, expression_of, hint_of, is_symbol
from stator.pytorch.shapes.dynamism import is_fixed
from stator.pytorch.shapes.unbacked import symbols_of
from stator.pytorch.shapes.written import written
from stator.space.value import Constant, NotKnown, Unsupported, Value

if TYPE_CHECKING:
    import sympy  # type: ignore[import-untyped]

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Function, Host, Number
    from stator.space.interfaces import Trace, Writer
    from stator.space.space import Space

__all__ = [
    "Condition",
    "arguments_of",
    "compute_again",
    "computed_after",
    "computed_number",
    "computed_sizes",
    "condition_on_existing",
    "depends_on_draws",
    "existing",
    "existing_symbols",
    "fix",
    "is_nonzero",
    "is_of_numbers",
    "made_again",
    "refuse_drawn",
    "selected",
]

_PAST_64_BITS = 1 << 63
#: how many calls a formula has: what is used twice is computed twice, so those of `r = r * r` double with each line
_MOST_STEPS = 200
#: calls of numbers that raise no error
_NEVER_FAILING = frozenset(
    (
        *(operator.add, operator.sub, operator.mul, operator.neg, operator.abs, torch.sym_float, torch.sym_not),
        *(operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge, operator.and_, operator.or_),
    )
)


class _Formula:
    """A number as Python text: over existing numbers, which have names n0, n1 …, with functions f0, f1 …"""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.sources: dict[Source, str] = {}
        self.functions: dict[Function, str] = {}
        self._steps = 0

    def call(self, function: Function, args: Sequence[Any]) -> str:
        """A call of a function; raises NotKnown where an argument isn't made of existing numbers."""
        return f"{self.function(function)}({', '.join(map(self.number, args))})"

    def function(self, function: Function) -> str:
        """The name that it has in the text."""
        return self.functions.setdefault(function, f"f{len(self.functions)}")

    def number(self, value: Any) -> str:
        """The text of a number; raises NotKnown where it isn't made of existing numbers, or of too many steps."""
        if not value.symbolic:
            return _shown(value)
        if value.source is not None:
            return self.name(value.source)
        self._steps += 1
        if self._steps > _MOST_STEPS:
            raise NotKnown(value)
        node, values = value._node, self.recorder.nodes.values
        if node is None or node.op != "call_function" or not all(operand in values for operand in node.all_input_nodes):
            return self.expression(value.number, value)
        return self.call(node.target, arguments_of(self.recorder, node))

    def expression(self, number: Number, value: Value | None = None) -> str:
        """A size that an operation's result has: as an expression over symbols, which is exact for whole numbers."""
        expression = expression_of(number) if is_symbol(number) else None
        if expression is None:
            return repr(number)
        symbols = existing_symbols(self.recorder, number)
        if symbols is None:
            raise NotKnown(value)
        names = {name: self.name(known.source) for name, known in symbols.items()}  # type: ignore[arg-type]
        return f"({_NAME.sub(lambda found: names.get(found[0], found[0]), str(expression))})"

    def name(self, source: Source) -> str:
        return self.sources.setdefault(source, f"n{len(self.sources)}")

    def source(self, text: str, told: str = "") -> Source:
        """Where what the text computes is found, called what it is told as: else as it is written.

        Raises NotKnown if it is computed of no number.
        """
        compute, (first, *others) = self.over(text)
        return CallSource(compute, first, told or self.written(text), *others)

    def written(self, text: str, *, alone: bool = False) -> str:
        """The text as the program would write it, in the text of a source: as a part of any expression, or alone."""
        return written(text, len(self.sources), tuple(self.functions), alone=alone)

    def over(self, text: str) -> tuple[Function, tuple[Source, ...]]:
        """What computes the text, and the sources of the numbers that it is to be given; raises NotKnown if of none."""
        if not self.sources:
            raise NotKnown(None)
        return _compiled(text, tuple(self.sources.values()), tuple(self.functions)), tuple(self.sources)


def arguments_of(recorder: Recorder, node: torch.fx.Node) -> list[Any]:
    """The values that a node is given; None for what is no value of the trace's."""
    values = recorder.nodes.values
    return [values.get(arg) if isinstance(arg, torch.fx.Node) else Constant(arg) for arg in node.args]


class Condition:
    """A condition on existing numbers, or a number that is made of them, which CPython computes again at each call.

    Attributes:
        compute: what gives it, of what is found at `sources`.
        told: the condition as the program would write it.
    """

    def __init__(self, formula: _Formula, text: str) -> None:
        self._formula, self._text = formula, text
        self.compute, self.sources = formula.over(text)
        self.told = formula.source(text, formula.written(text, alone=True)).expr()

    @property
    def source(self) -> Source:
        """Where the outcome is found."""
        return self._formula.source(self._text)

    def negated(self) -> Condition:
        """The opposite."""
        return Condition(self._formula, f"not {self._text}")

    def possible(self) -> Condition:
        """That it, or a number, can be computed without an error."""
        return Condition(self._formula, f"({self._text},)")


def condition_on_existing(recorder: Recorder, value: Value) -> Condition | None:
    """A condition on numbers that there are before the graph runs, or a number; None for what only the graph knows."""
    formula = _Formula(recorder)
    try:
        return Condition(formula, formula.number(value))
    except NotKnown:
        return None


def existing_symbols(recorder: Recorder, number: Number) -> dict[str, Value] | None:
    """The existing numbers, by the names of their symbols, of which a whole one is made; None for others."""
    expression = expression_of(number)
    if expression is None or not isinstance(number, torch.SymInt) or not _is_python(expression):
        return None
    found = {s.name: recorder.shapes.symbols.get(s) for s in sorted(expression.free_symbols, key=str)}
    return None if any(known is None or known.source is None for known in found.values()) else found


def is_of_numbers(recorder: Recorder, number: Number) -> bool:
    """Whether a whole number is made of numbers read from the frame, and of no size."""
    symbols = existing_symbols(recorder, number)
    return symbols is not None and all(known.source in recorder.shapes.numbers for known in symbols.values())


def _is_python(expression: sympy.Expr) -> bool:
    """Whether the text of an expression gives its number in Python: a polynomial, or such as `(n - 4) // 2 + 1`."""
    if expression.is_Symbol or expression.is_Integer:
        return True
    if expression.is_Pow:
        base, exponent = expression.args
        return bool(exponent.is_Integer and exponent.is_nonnegative) and _is_python(base)
    is_sum = expression.is_Add or expression.is_Mul or type(expression).__name__ in DIVISIONS
    return is_sum and all(map(_is_python, expression.args))


def depends_on_draws(value: Any) -> bool:
    """Whether a number that is not known depends on what a random generator draws in this call."""
    symbols = value.recorder.shapes.symbols
    found = (symbols.get(symbol) for symbol in symbols_of(value.number))
    return any(known is not None and known.source is not None and is_drawn(known.source) for known in found)


def refuse_drawn(trace: Trace, value: Any) -> None:
    """A number is to be known: refuse one that is drawn, unless that may be guarded."""
    if depends_on_draws(value) and not may_assume(trace, str(value.number), exactly=value.cls is float):
        raise Unsupported(errors.DrawnBranch(value.describe()))


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
            known = _existing(space, result, formula.source(text))
    except Exception:
        return None
    if known is not None:
        shapes.elements[key] = known
    return known


def existing(space: Space, value: Any) -> Value | None:
    """A number that existing ones give, as one that CPython computes before the graph runs; None for others."""
    shapes, source = space.trace.recorder.shapes, made_again(space.trace.recorder, value)
    if source is None:
        return None
    known: Value | None = shapes.elements.get(source)
    if known is None:
        known = shapes.elements[source] = _existing(space, hint_of(value.number), source)
    return known


def selected(space: Space, container: Value, key: Any, read: Function) -> Value | None:
    """What `read` finds in an existing object by a symbol: an object at a source of its own (`Value.select`)."""
    if depends_on_draws(key) and not are_alike(container.host):
        return None  # which one it is decides what is done
    assert container.source is not None
    base = container.source

    def place(function: Function) -> Source:
        formula = _Formula(space.trace.recorder)
        container, number = formula.name(base), formula.number(key)
        told = key_text(read, formula.written(number, alone=True))
        return formula.source(f"{formula.function(function)}({container}, {number})", f"{{}}[{told}]")

    try:
        return select(space, container, hint_of(key.number), read, place)
    except NotKnown:
        return None


def made_again(recorder: Recorder, value: Value) -> Source | None:
    """Where a number is that existing ones give, before the graph runs; None for what only the graph knows."""
    formula = _Formula(recorder)
    try:
        whole = value.cls is int
        return formula.source(formula.expression(value.number, value) if whole else formula.number(value))  # type: ignore[attr-defined]
    except NotKnown:
        return None


def computed_after(recorder: Recorder, value: Any, writer: Writer) -> str | None:
    """Write what computes a float or a condition when the graph has run, as Python does, of what the graph reads: its
    name, or None for numbers that only the graph can compute.

        score = beams[0][0] + logits.max().item()

    Backends round otherwise: they simplify `2 * (0.1 - n / 2) + 1` to `1.2 - n`. And an existing float that varies they
    are given in a tensor; what they would not compute of tensors they would make a constant of.
    """
    pending, name = [value], None
    while pending:
        number = pending[-1]
        operands = _operands(recorder, number)
        first = [arg for arg in operands or () if not writer.is_made(arg) and _operands(recorder, arg)]
        pending += first
        if not first:
            pending.pop()
            if operands and not writer.is_made(number):
                call = ", ".join(map(writer.expr, operands))
                name = writer.assign("number", f"{writer.const(number._node.target)}({call})")
                writer.name_value(number, name)
    return name


def _operands(recorder: Recorder, value: Any) -> list[Any] | None:
    """What Python computes a number of, without an error whatever they are: when it does that shows nowhere, then."""
    node = value._node if value.symbolic and value.cls is not int else None
    if node is None or not _never_fails(node):
        return None
    args = arguments_of(recorder, node)
    return None if None in args else args


def _never_fails(node: torch.fx.Node) -> bool:
    return node.target in _NEVER_FAILING or (node.target is operator.truediv and is_nonzero(node.args[1]))


def is_nonzero(divisor: Any) -> bool:
    """Whether an argument of a node is known not to be zero; a number from before the graph is guarded not to be."""
    if not isinstance(divisor, torch.fx.Node):
        return bool(divisor != 0)
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    tensor = divisor.all_input_nodes[0] if divisor.target == "item" else divisor
    if tensor.target is torch.scalar_tensor:  # of a number, which is read again
        return is_nonzero(tensor.args[0])
    return statically_known_true(divisor.meta.get("example_value") != 0)


def computed_number(space: Space, result: Host, sources: list[Source], compute: Function, text: str) -> Value | None:
    """The number that `compute` gives for existing numbers, now `result`; None where it cannot be had."""
    for place, source in enumerate(sources):
        text = text.replace(source.expr(), f"{{{place or ''}}}")
    return _existing(space, result, CallSource(compute, sources[0], text, *sources[1:])) if sources else None


def _existing(space: Space, result: Host, source: Source) -> Value | None:
    """A number that is there when the graph runs: a symbol, where it can be one, or guarded to be what it is now."""
    if type(result) not in _ANSWERS:
        return None
    varies = type(result) in (int, float) and _is_small(result)
    if varies and not is_fixed(space.trace, source):
        if type(result) is int:
            space.trace.guard(TypeIs(source, int))  # there is no error, who ever uses it; floats are guarded anyway
        return space.trace.recorder.shapes.number(result, source)
    fix(space.trace, source, result)
    return Constant(result)


def fix(trace: Trace, source: Source, number: Host) -> None:
    """Guard what is computed of existing numbers to be what it is now."""
    is_nan = type(number) is float and math.isnan(number)  # which is equal to none, and another object each time
    trace.guard(Predicate((source,), math.isnan, f"{source.expr()} is NaN") if is_nan else Equals(source, number))


def computed_sizes(recorder: Recorder, numbers: Sequence[Number]) -> tuple[Function, tuple[Source, ...]] | None:
    """What computes the numbers, and the sources of what it is to be given; None where nothing is enough."""
    formula = _Formula(recorder)
    try:
        return formula.over(f"({', '.join(map(formula.expression, numbers))},)")
    except NotKnown:
        return None


#: what a computed number may be: all else is asked of the number that the symbol stands for
_ANSWERS = (bool, int, float, str)
_NUMBERS = {"inf": math.inf, "nan": math.nan}


_NAME = re.compile(r"\w+")


@functools.lru_cache(4096)
def _compiled(text: str, names: tuple[str, ...], functions: tuple[Function, ...]) -> Function:
    """What computes the text, one function for equal texts: sources are interned by it."""
    known = {f"f{number}": function for number, function in enumerate(functions)}
    return eval(f"lambda {', '.join(names)}: {text}", {"__builtins__": {}, **known, **_NUMBERS})


def _is_small(number: float) -> bool:
    return -_PAST_64_BITS <= number < _PAST_64_BITS if type(number) is int else math.isfinite(number)


def _shown(value: Any) -> str:
    if value.constant and value.cls in (bool, int, float):
        return f"({value.as_host(None)!r})"
    raise NotKnown(value)
