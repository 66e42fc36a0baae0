"""NumPy's random generators whose seed the program gives: they draw while tracing, on a twin in the same state.

    rng = np.random.default_rng(3)
    noise = rng.normal(size=4)      # these very numbers, in each call
    np.random.seed(0)               # from here on the state of NumPy's own generator is known

What is drawn is a constant of the graph. What a generator draws whose state the program has not set is an input of the
graph (`open_generators`), or is drawn when the graph has run (`random_draws`).
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from stator import errors
from stator.models.classes.instance import InstanceValue
from stator.models.functions.method import Bindable, Named
from stator.pytorch.nesting import items_of
from stator.pytorch.numpy.array_value import SCALARS
from stator.pytorch.numpy.function_call import call
from stator.pytorch.numpy.open_generators import OpenDraws, Opened, set_state, state_of
from stator.pytorch.numpy.random_draws import awaits_draws, draw_later, only_draws
from stator.space import facts
from stator.space.operands import host_errors
from stator.space.protocol import MODELS, NONE, register
from stator.space.value import Constant, NotKnown, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Host
    from stator.space.interfaces import Writer
    from stator.space.protocol import Handler
    from stator.space.space import Space

__all__ = ["install"]

_CLASSES: tuple[type, ...] = (np.random.RandomState, np.random.Generator)
#: methods that do something else than to draw, or draw into what they are given
_NO_DRAWS = frozenset({"seed", "shuffle", "get_state", "set_state", "tomaxint", "spawn"})
#: a larger array is no constant
_MOST_NUMBERS = 1 << 12


class CythonFunction(Bindable, Named):
    """A function written in Cython, which is a method where a class has it."""

    __slots__ = ()

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        return space.call_builtin(self.host, args, kwargs)


class GeneratorValue(InstanceValue):
    """A generator; `twin` is one in its state, or None as long as that is not known: then `drawn` has what it draws."""

    __slots__ = ("advanced", "drawn", "twin")

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        self.twin: Host = None
        self.drawn: OpenDraws | None = None
        self.advanced = False

    @classmethod
    def made(cls, twin: Host) -> GeneratorValue:
        """A new generator, which the program has seeded."""
        self = cls(type(twin))
        self.twin = twin
        return self

    def change(self, space: Space) -> None:
        """It is about to be drawn from, or seeded."""
        space.mark_mutated(self)
        self.advanced = True

    def draw(self, space: Space, method: Host, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """What the method draws, of a state that is not known; None where ordinary Python has to draw."""
        if not only_draws(method, self) or not space.trace.extension(Opened).add(space, self):
            return None
        drawn = None
        if not awaits_draws(space, self):
            self.drawn = self.drawn or OpenDraws(self)
            drawn = self.drawn.draw(space, method, args, kwargs)
        if drawn is not None:
            self.change(space)
        elif not kwargs and not self.advanced:
            return draw_later(space, method, [self, *args])
        return drawn

    # -- generated code ---------------------------------------------------------------------------------------------

    def rebuilt(self, writer: Writer) -> str:
        return writer.assign("generator", f"{writer.const(_in_state)}({writer.const(state_of(self.twin))})")

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        if not self.advanced:
            return super().effects(writer)
        if self.twin is None:
            assert self.drawn is not None
            return [self.drawn.effect(writer)]
        return [f"{writer.const(set_state)}({writer.source(self.source)}, {writer.const(state_of(self.twin))})"]


def _in_state(state: Host) -> Host:
    """A generator in the state: of the kind that has such states."""
    cls: Any = np.random.RandomState if "has_gauss" in state else None
    made = np.random.Generator(getattr(np.random, state["bit_generator"])()) if cls is None else cls()
    set_state(made, state)
    return made


# -- what the program calls -------------------------------------------------------------------------------------------


def _host(space: Space, value: Value) -> Host:
    """A known operand; raises NotKnown."""
    value = value.force()
    items = items_of(space, value)
    if items is not None:
        return tuple([_host(space, item) for item in items])
    return space.decide(value) if value.symbolic else value.as_host(space)


def _known(space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]) -> tuple[list[Host], dict[str, Host]]:
    try:
        return [_host(space, arg) for arg in args], {name: _host(space, arg) for name, arg in kwargs.items()}
    except NotKnown:
        raise _refusal(host) from None


def _refusal(host: Host) -> Unsupported:
    return Unsupported(errors.UnsupportedCCall(f"numpy.random.{getattr(host, '__qualname__', host)}"))


def _maker(host: Host) -> Handler:
    """What makes a generator: it is known if it is given its seed."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given, named = _known(space, host, args, kwargs)
        if not all(type(seed) in (int, tuple) for seed in (*given, *named.values())) or not (given or named):
            raise _refusal(host)
        with host_errors(space, Exception):
            return GeneratorValue.made(host(*given, **named))

    return handler


def _new(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`RandomState.__new__(cls, seed)`."""
    if not args or space.known(args[0].force()) is not np.random.RandomState:
        raise _refusal(np.random.RandomState)
    return _maker(np.random.RandomState)(space, args[1:], kwargs)  # type: ignore[return-value]


def _initialised(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`RandomState.__init__`: it has its seed already."""
    return NONE if isinstance(args[0].force(), GeneratorValue) else None


def _seed(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`RandomState.seed(seed)`."""
    generator, host = args[0].force(), np.random.RandomState
    given, named = _known(space, host.seed, args[1:], kwargs)
    seeds = [*given, *named.values()]
    if not seeds or not all(type(seed) in (int, tuple) for seed in seeds) or not isinstance(generator, GeneratorValue):
        raise _refusal(host.seed)
    if generator.source is not None and (awaits_draws(space) or not _holds_default(space, generator)):
        raise _refusal(host.seed)
    with host_errors(space, Exception):
        made = host()
        made.seed(*given, **named)
    generator.change(space)
    generator.twin = made
    return NONE


def _holds_default(space: Space, generator: Value) -> bool:
    """Whether an existing generator draws bits as new ones do; guarded."""
    return facts.holds(space, generator, _draws_by_default, "draws bits by MT19937")


def _draws_by_default(generator: Host) -> bool:
    return type(generator) is np.random.RandomState and generator.get_state(legacy=False)["bit_generator"] == "MT19937"


def _seed_numpys_own(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`np.random.seed(seed)`."""
    method: Host = np.random.rand
    return _seed(space, [space.existing(method.__self__), *args], kwargs)


def _drawing(method: Host) -> Handler:
    """A method that draws."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        generator = args[0].force() if args else None
        if not isinstance(generator, GeneratorValue) or "out" in kwargs:
            raise _refusal(method)
        if generator.twin is None:
            open_drawn = generator.draw(space, method, args[1:], kwargs)
            if open_drawn is None:
                raise _refusal(method)
            return open_drawn
        given, named = _known(space, method, args[1:], kwargs)
        generator.change(space)
        with host_errors(space, Exception):
            drawn = method(generator.twin, *given, **named)
        return _constant(space, method, drawn)

    return handler


def _constant(space: Space, method: Host, drawn: Host) -> Value:
    """What was drawn: a number, or a new array of such in each call."""
    if not isinstance(drawn, np.ndarray):
        return space.fresh(drawn)
    if not 0 < drawn.size <= _MOST_NUMBERS or drawn.dtype.type not in SCALARS:
        raise _refusal(method)
    return call(space, np.array, "array", [_nested(space, drawn.tolist())], {"dtype": Constant(drawn.dtype.name)})


def _nested(space: Space, numbers: Host) -> Value:
    if isinstance(numbers, list):
        return space.new_list([_nested(space, part) for part in numbers])
    return space.fresh(numbers)


def install() -> None:
    """Register the models."""
    kind = type(np.random.default_rng)
    if kind is FunctionType:  # not compiled as NumPy's releases are
        return
    MODELS.setdefault(kind, CythonFunction)
    for cls in _CLASSES:
        MODELS[cls] = GeneratorValue
        for name, method in vars(cls).items():
            if type(method) is kind and name[0] != "_" and name not in _NO_DRAWS:
                register(method, _drawing(method))
    register(np.random.RandomState.__new__, _new)
    register(vars(np.random.RandomState)["__init__"], _initialised)
    register(vars(np.random.RandomState)["seed"], _seed)
    register(np.random.seed, _seed_numpys_own)
    register(np.random.default_rng, _maker(np.random.default_rng))
