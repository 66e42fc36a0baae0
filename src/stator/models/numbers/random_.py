"""random.Random: the generator runs for real, on a shadow that starts in the state of the existing one.

The state is guarded like any other value. Code that meets another state when it is traced again is not for one state:
from then on what is drawn is a number that varies. While guards are checked a copy draws it, and the generator itself
does so as an effect. What needs the state, or a number that cannot vary, breaks the graph.
"""

from __future__ import annotations

import _random
import random
from collections.abc import Callable

from stator import errors
from stator.guards.base import Change, Where
from stator.guards.guard import Predicate
from stator.guards.naming import Names
from stator.guards.source import CallSource, Source
from stator.models.classes.instance import InstanceValue
from stator.models.numbers.last_draw import MOST_DRAWS, Draw, LastDraw
from stator.space import facts
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import host_errors, known_host, literal
from stator.space.protocol import NONE, bad_call, models, register
from stator.space.space import Space
from stator.space.value import Constant, Unsupported, Value

__all__ = ["RandomValue"]

#: where code is traced more often with such draws, these decide its branches: ordinary Python draws, and what follows
#: is traced once for each side, and not for each combination of them
_MOST_TRACES = 2


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


class _Drawn(LastDraw):
    def copied(self, generator: Host) -> Host:
        copy = random.Random.__new__(random.Random)
        _random.Random.setstate(copy, _random.Random.getstate(generator))
        return copy


def _unseeded() -> Host:
    """A generator that only `__init__` will seed."""
    return _random.Random.__new__(_random.Random)


def _may_seed(value: Value) -> bool:
    """Whether the value makes the state a known one, which None (the operating system's noise) does not."""
    return literal(value) and not value.is_none()


@models(_random.Random)
class RandomValue(InstanceValue):
    """A generator of random numbers; `shadow` is in the state that the traced program has brought it to."""

    __slots__ = ("advanced", "draws", "shadow")

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        #: None as long as the state of an existing generator has not been looked at, and where it is not known: that
        #: of a new one which the operating system seeds
        self.shadow: Host = None
        #: whether the traced program has drawn from it, or set its state
        self.advanced = False
        #: what has been drawn from an existing generator of which the state is not known
        self.draws: tuple[Draw, ...] = ()

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
            state = _random.Random.getstate(self.host)
            space.trace.guard(_InState(self.source, state))
            self.shadow = _random.Random(0)
            self.shadow.setstate(state)
        if change:
            space.mark_mutated(self)
            self.advanced = True
        return self.shadow

    def _stays(self, space: Space) -> bool:
        """Whether the existing generator was in the same state in all earlier traces of the same code."""
        assert self.source is not None
        state = hash(_random.Random.getstate(self.host))
        seen = space.trace.region_state.setdefault("generators", {})
        return bool(seen.setdefault(self.source.expr(), state) == state)

    def is_open(self, space: Space) -> bool:
        """Whether numbers are drawn from a state that is another in each call."""
        return self.shadow is None and self.source is not None and not self._stays(space)

    def draw_open(self, space: Space, method: Callable[..., float], *args: int) -> Value:
        """What the method draws from such a state: a number that varies."""
        assert self.source is not None
        draws = (*self.draws, (method, args))
        drawn = _Drawn(draws)
        source = CallSource(drawn, self.source, f"{{}}.{method.__name__}()")
        facts.expect_others(space.trace, source)
        number = space.symbol(drawn(self.host), source) if self._may_draw(space) else None
        if number is None:
            raise Unsupported(errors.RandomStateAccess(f"random.Random.{method.__name__}"))
        space.mark_mutated(self)
        self.advanced = True
        self.draws = draws
        return number

    def _may_draw(self, space: Space) -> bool:
        if self.draws:
            return len(self.draws) < MOST_DRAWS
        state = space.trace.region_state
        state["open draws"] = count = state.get("open draws", 0) + 1
        return count <= _MOST_TRACES or space.trace.compile_region.fullgraph

    # -- methods ----------------------------------------------------------------------------------------------------

    def random(self, space: Space) -> Value:
        if self.is_open(space):
            return self.draw_open(space, _random.Random.random)
        return Constant(self._state(space, "random", change=True).random())

    def getrandbits(self, space: Space, k: Value, /) -> Value:
        bits = space.int_(k)
        if bits > 0 and self.is_open(space):
            return self.draw_open(space, _random.Random.getrandbits, bits)
        with host_errors(space, ValueError, OverflowError, MemoryError):
            return Constant(self._state(space, "getrandbits", change=True).getrandbits(bits))

    def seed(self, space: Space, n: Value = NONE, /) -> Value:
        n = n.force()
        if not _may_seed(n):
            if self.source is not None:
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
        return [*lines, *(f"{writer.const(m)}({', '.join([name, *map(repr, args)])})" for m, args in self.draws)]

    def _set_state(self, writer: Writer, name: str) -> str:
        return f"{writer.const(_random.Random.setstate)}({name}, {writer.const(self.shadow.getstate())})"


def _below(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`generator._randbelow(n)`, by which all draw integers: it draws until one is small enough."""
    if len(args) != 2 or kwargs:
        return None
    generator, n = args[0].force(), args[1].force()
    if not isinstance(generator, RandomValue) or not n.constant or n.cls is not int or n.host <= 0:
        return None
    if space.host_lookup(generator.cls, "getrandbits") is not _random.Random.getrandbits:
        return None
    return generator.draw_open(space, _RANDBELOW, n.host) if generator.is_open(space) else None


_RANDBELOW: Host = vars(random.Random)["_randbelow"]
register(_RANDBELOW, _below)
