"""Single numbers that NumPy's generators draw: drawn when the graph has run, in the program's order.

    p = np.random.uniform(0, 1)
    if self.training and p < self.layerdrop: ...

What is drawn is not known to the trace, unless it has seeded the generator (`generators`). A number that nobody looks
at breaks nothing, nor does one that is returned or kept; one that decides a branch, or that is computed with, breaks
the graph there. Arrays of random numbers do where they are drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stator.space.deferred import DeferredNumber

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.interfaces import Trace, Writer
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["awaits_draws", "draw_later"]

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


class _Draws:
    """The last number that the trace has drawn."""

    def __init__(self, trace: Trace) -> None:
        self.last: _Drawn | None = None


class _Drawn(DeferredNumber):
    """A number that is drawn after another one, `earlier`."""

    __slots__ = ("earlier",)

    def __init__(self, cls: type, method: Host, args: list[Value], earlier: _Drawn | None) -> None:
        super().__init__(cls, method, args)
        self.earlier = earlier

    def describe(self) -> str:
        return "a random number"

    def reconstruct(self, writer: Writer) -> str:
        if self.earlier is not None:
            writer.expr(self.earlier)
        return super().reconstruct(writer)


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
