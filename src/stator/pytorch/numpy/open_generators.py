"""What NumPy's generators draw of which the state is not known: inputs of the graph.

    p = np.random.uniform(0, 1)
    noise = rng.normal(size=4)

A copy of the generator draws them while guards are checked, and the generator itself when the graph has run (see
stator.models.numbers.draws).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stator.guards.guard import Predicate
from stator.guards.interned import Interned
from stator.guards.source import CallSource
from stator.models.numbers.draws import Given, Place, given_number, next_place, number_source, shown
from stator.pytorch.nesting import items_of
from stator.pytorch.numpy.array_value import SCALARS
from stator.space import facts

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.pytorch.types import Host
    from stator.space.interfaces import Trace, Writer
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["OpenDraws", "Opened", "set_state", "state_of"]

#: more draws from one generator break the graph: guards make them all
_MOST_DRAWS = 256
#: of more draws the state is taken over
_MOST_REPEATED = 8
_LITERALS = (int, float, str, bool, type(None))


def state_of(generator: Host) -> Host:
    """The state, from which a generator can be made."""
    return generator.get_state(legacy=False) if hasattr(generator, "get_state") else generator.bit_generator.state


def set_state(generator: Host, state: Host) -> None:
    """Bring a generator into a state."""
    if hasattr(generator, "set_state"):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def _copy(generator: Host) -> Host:
    """A generator in the same state."""
    state = state_of(generator)
    kind: Host = np.random.RandomState if issubclass(type(generator), np.random.RandomState) else np.random.Generator
    made = kind(getattr(np.random, state["bit_generator"])(0))
    set_state(made, state)
    return made


def _begin(generator: Host) -> Place:
    return Place.of(generator, _copy)


def _reach(generator: Host, place: Place) -> None:
    """Let a generator draw what its copy has drawn."""
    draws = place.draws()
    if len(draws) > _MOST_REPEATED or isinstance(place.number, np.ndarray):
        set_state(generator, state_of(place.copy()))
    else:
        for method, args in draws:
            method(generator, *args)


def _bits(generator: Host) -> Host:
    """What a generator draws bits from; others may share it."""
    return getattr(generator, "_bit_generator", None) or generator.bit_generator


def _draw_apart(one: Host, other: Host) -> bool:
    return _bits(one) is not _bits(other)


class _Named(Interned):
    """A method that is given the last of its arguments by name."""

    def __init__(self, method: Host, *names: str) -> None:
        self.method = method
        self.names = names
        self.__name__ = method.__name__

    def __call__(self, generator: Host, *args: Host) -> Host:
        count = len(args) - len(self.names)
        return self.method(generator, *args[:count], **dict(zip(self.names, args[count:], strict=True)))


class Opened:
    """The generators of which the state is not known that a trace has drawn from."""

    def __init__(self, trace: Trace) -> None:
        self.generators: list[Value] = []

    def add(self, space: Space, generator: Value) -> bool:
        """Note one more; False where it draws from the bits of another one."""
        if any(other is generator for other in self.generators):
            return True
        if any(_bits(generator.host) is _bits(other.host) for other in self.generators):
            return False
        for other in self.generators:
            sources = (generator.source, other.source)
            text = " and ".join(source.expr() for source in sources if source is not None)
            space.trace.guard(Predicate(sources, _draw_apart, f"{text} draw different bits"))  # type: ignore[arg-type]
        self.generators.append(generator)
        return True


class OpenDraws:
    """What has been drawn from an existing generator of which the state is not known."""

    def __init__(self, generator: Value) -> None:
        self.generator = generator
        #: where the draws have left it, and where that is found; how many there are
        self.at: Place | None = None
        self.place: Source | None = None
        self.count = 0

    def draw(self, space: Space, method: Host, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """What the method draws; None where it can be no input."""
        given = [_given(space, arg) for arg in (*args, *kwargs.values())]
        if None in given or self.count == _MOST_DRAWS:
            return None
        function = _Named(method, *kwargs) if kwargs else method
        try:
            before = self.at or _begin(self.generator.host)
            at = before.after((function, tuple([now for now, _ in given])))  # type: ignore[misc]
        except Exception:
            return None  # which the method says itself, or bits of a kind that is none of NumPy's
        begun = self.place or CallSource(_begin, self.generator.source, "{}")  # type: ignore[arg-type]
        place, known, others = next_place(begun, function, given)  # type: ignore[arg-type]
        drawn = _wrapped(space, at.number, number_source(place, _text(method, known, list(kwargs)), *others))
        if drawn is not None:
            self.at, self.place = at, place
            self.count += 1
        return drawn

    def effect(self, writer: Writer) -> str:
        """The statement that lets the generator draw."""
        assert self.place is not None and self.generator.source is not None
        return f"{writer.const(_reach)}({writer.source(self.generator.source)}, {writer.source(self.place)})"


def _given(space: Space, arg: Value) -> Given | None:
    """An argument as it is now, and where it is found if it varies; None for one that is neither known nor a number."""
    arg = arg.force()
    items = items_of(space, arg)
    if items is not None:
        parts = [item.force() for item in items]
        known = all(part.constant and part.cls in _LITERALS for part in parts)
        return (tuple([part.host for part in parts]), None) if known else None
    if arg.constant and arg.cls in _LITERALS:
        return arg.host, None
    return given_number(arg)


def _text(method: Host, args: list[Host], names: list[str]) -> str:
    """The draw as the program might write it."""
    texts = shown(args)
    first = len(texts) - len(names)
    named = [f"{name}={text}" for name, text in zip(names, texts[first:], strict=True)]
    return f"{{}}.{method.__name__}({', '.join([*texts[:first], *named])})"


def _wrapped(space: Space, drawn: Host, source: Source) -> Value | None:
    """What is drawn: a number that varies, or an array that is new in each call."""
    if type(drawn) in (int, float):
        facts.expect_others(space.trace, source)
        return space.symbol(drawn, source)
    if type(drawn) in SCALARS or (type(drawn) is np.ndarray and drawn.dtype.type in SCALARS):
        return space.wrap(drawn, source)
    return None
