"""Single numbers that NumPy's generators draw when the graph has run, in the program's order.

    p = np.random.uniform(0, 1)
    return loss, p

So it is where what is drawn can be no input of the graph (`open_generators`), as numbers are not to be symbols: one
that nobody looks at breaks nothing, nor does one that is returned or kept; one that an operation is given, or that
decides a branch, breaks the graph there.
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

__all__ = ["awaits_draws", "draw_later", "only_draws"]

_KINDS = (np.random.RandomState, np.random.Generator)
#: what draws from a distribution, without anything else that it does
_DISTRIBUTIONS = (
    *("beta", "binomial", "chisquare", "choice", "dirichlet", "exponential", "gamma", "geometric", "gumbel"),
    *("integers", "laplace", "logistic", "lognormal", "multinomial", "normal", "pareto", "permutation"),
    *("poisson", "power", "rand", "randint", "randn", "random", "random_sample", "rayleigh", "standard_cauchy"),
    *("standard_exponential", "standard_gamma", "standard_normal", "standard_t", "triangular", "uniform"),
    *("vonmises", "wald", "weibull", "zipf"),
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


def only_draws(method: Host, generator: Value) -> bool:
    """Whether all that the method does is to draw from an existing generator, which is of the class that has it."""
    return generator.source is not None and _METHODS.get(id(method)) is generator.cls


def draw_later(space: Space, method: Host, args: list[Value]) -> Value | None:
    """What a generator of which nothing is known draws, `args[0]`; None where it must be drawn at once."""
    given = [arg.force() for arg in args]
    if not all(value.constant for value in given[1:]):
        return None
    sample = _sample(given[0].cls, method, [value.host for value in given[1:]])
    return _later(space, type(sample), method, given) if type(sample) in (int, float) else None


def awaits_draws(space: Space, generator: Value | None = None) -> bool:
    """Whether something is to be drawn when the graph has run, by a generator or by any."""
    number = space.trace.extension(_Draws).last
    while number is not None and generator is not None and number.args[0] is not generator:
        number = number.earlier
    return number is not None


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
