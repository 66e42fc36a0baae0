"""random.Random: what it draws is a number that varies, or a known one where its state is.

A draw from an existing generator is one number, whatever method makes it: while guards are checked a copy of the
generator draws it (`draws`), and the generator itself does so as an effect. One that the program has seeded runs for
real, on a shadow in its state. What needs the state of an existing one assumes it, unless it has been another in an
earlier trace: then it breaks the graph, at the program's call.
"""

from __future__ import annotations

import _random
import random
from collections.abc import Callable
from typing import Any

from stator import errors
from stator.guards.base import Change, Where
from stator.guards.guard import Predicate
from stator.guards.naming import Names
from stator.guards.source import AttrSource, CallSource, Source
from stator.models.classes.instance import InstanceValue
from stator.models.numbers.draws import Given, Place, given_number, next_place, number_source, shown
from stator.models.numbers.ways import are_known
from stator.space import facts
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import host_errors, known_host, literal
from stator.space.protocol import NONE, bad_call, models
from stator.space.space import Space
from stator.space.value import Constant, Unsupported, Value

__all__ = ["RandomValue"]

#: more draws from one generator break the graph: guards make them all
_MOST_DRAWS = 256


class _StateIs:
    """Check that a generator is in this state."""

    def __init__(self, state: tuple[int, ...]) -> None:
        self.state = state

    def __call__(self, generator: Host) -> bool:
        return bool(_random.Random.getstate(generator) == self.state)


class _InState(Predicate):
    """A generator is in the state that it was in."""

    __slots__ = ()
    fn: _StateIs

    def __init__(self, source: Source, state: tuple[int, ...], where: Where = None) -> None:
        super().__init__((source,), _StateIs(state), f"the state of {source.expr()} is known", where=where)

    def changed(self, names: Names, *objects: Host) -> Change:
        return Change(f"the state of {names.quoted(self.sources[0])} has changed")

    def fields(self) -> tuple[object, ...]:
        return self.sources[0], self.fn.state


def _copy(generator: Host) -> Host:
    """A generator in the same state."""
    new: Host = _random.Random.__new__
    copy = new(random.Random, 0)  # seeded, or the system would be asked for noise
    _random.Random.setstate(copy, _random.Random.getstate(generator))
    copy.gauss_next = getattr(generator, "gauss_next", None)
    return copy


def _begin(generator: Host) -> Place:
    return Place.of(generator, _copy)


def _gauss_next(place: Place) -> Host:
    """The second of the numbers that `gauss` makes at once, if it is still to be given."""
    return place.gauss_next


def _reach(generator: Host, place: Place) -> None:
    """Let a generator draw what its copy has drawn. What it keeps of `gauss` is an attribute, and written as such."""
    draws = place.draws()
    if any(method is random.Random.gauss for method, _ in draws):
        _random.Random.setstate(generator, _random.Random.getstate(place.copy()))
    else:
        for method, args in draws:
            method(generator, *args)


def _unseeded() -> Host:
    """A generator that only `__init__` will seed."""
    return _random.Random.__new__(_random.Random)


def _may_seed(value: Value) -> bool:
    """Whether the value makes the state a known one, which None (the operating system's noise) does not."""
    return literal(value) and not value.is_none()


@models(_random.Random)
class RandomValue(InstanceValue):
    """A generator of random numbers; `shadow` is in the state that the traced program has brought it to."""

    __slots__ = ("advanced", "at", "count", "gauss_next", "place", "shadow")

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        #: None as long as the state of an existing generator has not been looked at, and where it is not known: that
        #: of a new one which the operating system seeds
        self.shadow: Host = None
        #: whether the traced program has drawn from it, or set its state
        self.advanced = False
        #: where what has been drawn from an existing generator of which the state is not known has left it, and where
        #: that is found; how often it has been drawn from
        self.at: Place | None = None
        self.place: Source | None = None
        self.count = 0
        #: the attribute, as draws have left it
        self.gauss_next: Value | None = None

    @staticmethod
    def tp_new(space: Space, cls: Value, /, *args: Value, **kwargs: Value) -> Value:
        made = RandomValue(known_host(space, cls, "random.Random.__new__"))
        made.shadow = _unseeded()
        return made

    def tp_init(self, space: Space, /, *args: Value, **kwargs: Value) -> Value:
        if len(args) > 1 or kwargs:
            return bad_call(space, _random.Random, list(args), kwargs)
        return self.seed(space, *args)

    # -- the state --------------------------------------------------------------------------------------------------

    def _state(self, space: Space, operation: str, *, change: bool) -> Host:
        """The shadow, about to be asked, or changed."""
        if self.shadow is None:
            if self.source is None or not self._stays(space):
                raise Unsupported(errors.RandomStateAccess(f"random.Random.{operation}"))
            space.trace.guard(_InState(self.source, _random.Random.getstate(self.host)))
            self.shadow = _random.Random(0)
            self.shadow.setstate(_random.Random.getstate(self.host if self.at is None else self.at.copy()))
        if change:
            self._advance(space)
        return self.shadow

    def _advance(self, space: Space) -> None:
        space.mark_mutated(self)
        self.advanced = True

    def _stays(self, space: Space) -> bool:
        """Whether the existing generator was in the same state in all earlier traces of the same code."""
        assert self.source is not None
        state = hash(_random.Random.getstate(self.host))
        return facts.stays(space.trace, "generators", self.source.expr(), state)

    def is_open(self, space: Space) -> bool:
        """Whether it exists, and its state is not to be known."""
        if self.shadow is not None or self.source is None:
            return False
        return not (are_known(space.trace) and self._stays(space))

    def draw(self, space: Space, method: Callable[..., Any], args: list[Value]) -> Value | None:
        """What the method of an open generator draws: a number that varies; None where it has to be known."""
        assert self.source is not None
        given = [_given(arg) for arg in args]
        if None in given or self.count == _MOST_DRAWS or not self._keeps_gauss_next(space, method):
            return None
        if self.at is None:
            self.at, self.place = _begin(self.host), CallSource(_begin, self.source, "{}")
        assert self.place is not None
        try:
            at = self.at.after((method, tuple([now for now, _ in given])))  # type: ignore[misc]
        except Exception:
            return None  # which the method says itself
        place, known, others = next_place(self.place, method, given)  # type: ignore[arg-type]
        source = number_source(place, _text(method, known), *others)
        facts.expect_others(space.trace, source)
        number = space.symbol(at.number, source)
        if number is not None:
            self._advance(space)
            self.at, self.place = at, place
            self.count += 1
            if method is random.Random.gauss:
                self.gauss_next = space.wrap(at.gauss_next, CallSource(_gauss_next, place, "{}.gauss_next"))
                self.attr_dict(space).set_str(space, "gauss_next", self.gauss_next)
        return number

    def _keeps_gauss_next(self, space: Space, method: Host) -> bool:
        """Whether the method finds what draws have left of `gauss`, and not what the program has assigned."""
        if method is not random.Random.gauss:
            return True
        kept = self.attr_dict(space).get_str(space, "gauss_next")
        if self.gauss_next is None:
            return kept is not None and kept.source is AttrSource(self.source, "gauss_next")  # type: ignore[arg-type]
        return kept is self.gauss_next

    # -- methods ----------------------------------------------------------------------------------------------------

    def random(self, space: Space) -> Value:
        drawn = self.draw(space, _random.Random.random, []) if self.is_open(space) else None
        return Constant(self._state(space, "random", change=True).random()) if drawn is None else drawn

    def getrandbits(self, space: Space, k: Value, /) -> Value:
        bits = space.int_(k)
        drawn = self.draw(space, _random.Random.getrandbits, [Constant(bits)]) if self.is_open(space) else None
        if drawn is not None:
            return drawn
        with host_errors(space, ValueError, OverflowError, MemoryError):
            return Constant(self._state(space, "getrandbits", change=True).getrandbits(bits))

    def seed(self, space: Space, n: Value = NONE, /) -> Value:
        n = n.force()
        if not _may_seed(n):
            if self.source is not None or n.symbolic:
                raise Unsupported(errors.RandomStateAccess("random.Random.seed"))
            self.shadow = None  # nobody knows the state of the new generator until it is set
            return NONE
        if self.shadow is None:
            self.shadow = _random.Random(0)
        self._state(space, "seed", change=True).seed(n.as_host(space))
        return NONE

    def getstate(self, space: Space) -> Value:
        return space.fresh(self._state(space, "getstate", change=False).getstate())

    def setstate(self, space: Space, state: Value, /) -> Value:
        host = known_host(space, state, "random.Random.setstate")
        shadow = _random.Random(0)
        with host_errors(space, Exception):
            shadow.setstate(host)
        self.shadow = shadow
        self._state(space, "setstate", change=True)
        return NONE

    # -- generated code ---------------------------------------------------------------------------------------------

    def shell(self, writer: Writer) -> str:
        return f"{writer.const(_random.Random)}.__new__({writer.const(self.cls)})"

    def reconstruct(self, writer: Writer) -> str:
        name = super().reconstruct(writer)
        if self.source is None:
            by_system = f"{writer.const(_random.Random.seed)}({name})"
            writer.line(by_system if self.shadow is None else self._set_state(writer, name))
        return name

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        lines = super().effects(writer)
        if not self.advanced:
            return lines
        name = writer.source(self.source)
        if self.shadow is not None:
            return [*lines, self._set_state(writer, name)]
        assert self.place is not None
        return [*lines, f"{writer.const(_reach)}({name}, {writer.source(self.place)})"]

    def _set_state(self, writer: Writer, name: str) -> str:
        return f"{writer.const(_random.Random.setstate)}({name}, {writer.const(self.shadow.getstate())})"


def _given(arg: Value) -> Given | None:
    """An argument of a draw as it is now, and where it is found if it varies; None for one that is no number."""
    arg = arg.force()
    if arg.constant and arg.cls in (int, float, type(None)):
        return arg.host, None
    return given_number(arg)


def _text(method: Callable[..., Any], args: list[Host]) -> str:
    """The draw as the program might write it."""
    given = ", ".join(shown(args))
    name = method.__name__
    if name == "_chosen":
        return f"{{}}.choice([{given}])"
    return f"{{}}.choice(range({given}))" if name == "_randbelow" else f"{{}}.{name}({given})"
