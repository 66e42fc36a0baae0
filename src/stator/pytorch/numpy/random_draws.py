"""Single numbers that NumPy's generators draw: drawn when the graph has run, in the program's order.

    p = np.random.uniform(0, 1)
    if self.training and p < self.layerdrop: ...

What is drawn is not known to the trace, unless it has seeded the generator (`generators`). A number that nobody looks
at breaks nothing, nor does one that is returned or kept; one that decides a branch breaks the graph there. One that an
operation is given (`x * p`) is an input of the graph: a copy of the generator draws it while guards are checked. Arrays
of random numbers break where they are drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stator.guards.source import CallSource
from stator.models.numbers.draws import Drawing, Place, number_source
from stator.pytorch.tensors.lowering import STAND_INS
from stator.space import facts
from stator.space.deferred import DeferredNumber

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.pytorch.types import Host
    from stator.space.interfaces import Trace, Writer
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["awaits_draws", "draw_later", "install"]

#: more draws from one generator break the graph: guards make them all
_MOST_DRAWS = 256
_KINDS = (np.random.RandomState, np.random.Generator)
#: what draws from a distribution, without anything else that it does
_DISTRIBUTIONS = (
    *("beta", "binomial", "chisquare", "exponential", "gamma", "geometric", "gumbel", "laplace", "logistic"),
    *("lognormal", "normal", "pareto", "poisson", "power", "rand", "randint", "randn", "random", "random_sample"),
    *("rayleigh", "standard_cauchy", "standard_exponential", "standard_gamma", "standard_normal", "standard_t"),
    *("triangular", "uniform", "vonmises", "wald", "weibull", "zipf"),
)
#: the methods that draw, by their ids, with the class whose they are
_METHODS: dict[int, type] = {
    id(vars(kind)[name]): kind for kind in _KINDS for name in _DISTRIBUTIONS if name in vars(kind)
}


def _copy(generator: Host) -> Host:
    """A generator in the same state."""
    if issubclass(type(generator), np.random.RandomState):
        state = generator.get_state(legacy=False)
        made: Host = np.random.RandomState(getattr(np.random, state["bit_generator"])(0))
        made.set_state(state)
        return made
    state = generator.bit_generator.state
    made = np.random.Generator(getattr(np.random, state["bit_generator"])(0))
    made.bit_generator.state = state
    return made


def _begin(generator: Host) -> Place:
    return Place.of(generator, _copy)


class _Draws:
    """The last number that the trace has drawn."""

    def __init__(self, trace: Trace) -> None:
        self.last: _Drawn | None = None


class _Drawn(DeferredNumber):
    """A number that is drawn after another one, `earlier`."""

    __slots__ = ("at", "count", "earlier", "number", "place")

    def __init__(self, cls: type, method: Host, args: list[Value], earlier: _Drawn | None) -> None:
        super().__init__(cls, method, args)
        self.earlier = earlier
        #: the input of the graph that it is
        self.number: Value | None = None
        #: where it leaves its generator, and where that is found; how many draws that takes
        self.at: Place | None = None
        self.place: Source | None = None
        self.count = 0

    def draw_on_copy(self) -> None:
        """Find the places that it and all draws before it from the same generator lead to."""
        pending = [self]
        while (before := pending[-1].earlier_of_its_own()) is not None and before.at is None:
            pending.append(before)
        generator: Host = self.args[0]
        for number in reversed(pending):
            before = number.earlier_of_its_own()
            args = number.given()
            if before is None:
                at, place = _begin(generator.host), CallSource(_begin, generator.source, "{}")
            else:
                at, place, number.count = before.at, before.place, before.count  # type: ignore[assignment]
            number.at = at.after((number.function, args))
            number.place = CallSource(Drawing(number.function, *args), place, "{}")
            number.count += 1

    def given(self) -> tuple[Host, ...]:
        """What the method is given, all of it known."""
        return tuple([arg.host for arg in self.args[1:]])

    def earlier_of_its_own(self) -> _Drawn | None:
        """The number that its generator has drawn before it."""
        before = self.earlier
        while before is not None and before.args[0] is not self.args[0]:
            before = before.earlier
        return before

    def describe(self) -> str:
        return "a random number"

    def reconstruct(self, writer: Writer) -> str:
        if self.earlier is not None:
            writer.expr(self.earlier)
        return super().reconstruct(writer)


def _as_input(space: Space, number: _Drawn) -> Value | None:
    """The number as an operation takes it; None where it cannot be had before the graph runs."""
    if number.number is None:
        number.draw_on_copy()
        if number.count > _MOST_DRAWS:
            return None
        assert number.at is not None and number.place is not None
        shown = ", ".join(map(repr, number.given()))
        source = number_source(number.place, f"{{}}.{number.function.__name__}({shown})")
        facts.expect_others(space.trace, source)
        number.number = space.symbol(number.at.number, source)
    return number.number


def _computed(space: Space, number: DeferredNumber) -> Value | None:
    """The same for a number that is computed of what was drawn."""
    args = [known for arg in number.args if (known := _operand(space, arg)) is not None]
    if len(args) < len(number.args):
        return None
    found = space.call_builtin(number.function, args, {}).force()
    return found if found.symbolic else None


def _operand(space: Space, value: Value) -> Value | None:
    if isinstance(value, _Drawn):
        return _as_input(space, value)
    if type(value) is DeferredNumber:
        return _computed(space, value)
    return value if value.constant or value.symbolic else None


def drawn(number: Host) -> None:
    """Called with a number, so that it has been drawn."""


def draw_later(space: Space, method: Host, args: list[Value]) -> Value | None:
    """What a generator of which nothing is known draws, `args[0]`; None where it must be drawn at once."""
    given = [arg.force() for arg in args]
    kind = _METHODS.get(id(method))
    if kind is None or given[0].cls is not kind or given[0].source is None:
        return None
    if not all(value.constant for value in given[1:]):
        return None
    sample = _sample(kind, method, [value.host for value in given[1:]])
    return _later(space, type(sample), method, given) if type(sample) in (int, float) else None


def awaits_draws(space: Space) -> bool:
    """Whether something is to be drawn when the graph has run."""
    return space.trace.extension(_Draws).last is not None


def _later(space: Space, cls: type, function: Host, given: list[Value]) -> _Drawn:
    """The number that the call will give, after all that has been drawn before."""
    draws = space.trace.extension(_Draws)
    draws.last = number = _Drawn(cls, function, given, draws.last)
    space.trace.defer(drawn, [number])
    return number


def _sample(kind: type, method: Host, args: list[Host]) -> object:
    """What the method gives, of another generator; None where it fails."""
    other = np.random.RandomState(0) if kind is np.random.RandomState else np.random.default_rng(0)
    try:
        return method(other, *args)
    except Exception:
        return None


def install() -> None:
    """Register what torch's operations take the numbers for."""
    STAND_INS[_Drawn] = _as_input
    STAND_INS[DeferredNumber] = _computed
