"""random.Random: the generator runs for real, on a shadow that starts in the state of the existing one.

The state is guarded like any other value. Code that meets another state when it is traced again is not for one state:
from then on what draws a number breaks the graph.
"""

from __future__ import annotations

import _random

from stator import errors
from stator.guards.guard import Predicate
from stator.models.classes.instance import InstanceValue
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import host_errors, known_host, literal
from stator.space.protocol import NONE, bad_call, models
from stator.space.space import Space
from stator.space.value import Constant, Unsupported, Value

__all__ = ["RandomValue"]


class _StateIs:
    """Check that a generator is in this state."""

    def __init__(self, state: tuple[int, ...]) -> None:
        self.state = state

    def __call__(self, generator: Host) -> bool:
        return bool(_random.Random.getstate(generator) == self.state)


def _unseeded() -> Host:
    """A generator that only `__init__` will seed."""
    return _random.Random.__new__(_random.Random)


def _may_seed(value: Value) -> bool:
    """Whether the value makes the state a known one, which None (the operating system's noise) does not."""
    return literal(value) and not value.is_none()


@models(_random.Random)
class RandomValue(InstanceValue):
    """A generator of random numbers; `shadow` is in the state that the traced program has brought it to."""

    __slots__ = ("advanced", "shadow")

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        #: None as long as the state of an existing generator has not been looked at, and where it is not known: that
        #: of a new one which the operating system seeds
        self.shadow: Host = None
        #: whether the traced program has drawn from it, or set its state
        self.advanced = False

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
            check = _StateIs(state)
            space.trace.guard(Predicate((self.source,), check, f"{self.source.expr()} is in a known state"))
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

    # -- methods ----------------------------------------------------------------------------------------------------

    def random(self, space: Space) -> Value:
        return Constant(self._state(space, "random", change=True).random())

    def getrandbits(self, space: Space, k: Value, /) -> Value:
        bits = space.int_(k)
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
        return [*lines, self._set_state(writer, writer.source(self.source))] if self.advanced else lines

    def _set_state(self, writer: Writer, name: str) -> str:
        return f"{writer.const(_random.Random.setstate)}({name}, {writer.const(self.shadow.getstate())})"
