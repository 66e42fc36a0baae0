"""torch's random generators: their states are tensors of the graph, and a draw is an operation on a state.

    def f(x, g):
        return x + torch.rand(3, generator=g)

is traced as `state, drawn = draw(state of g, …)` (see `draws`), and at the end `g` gets the state that the last draw
has left. So the numbers are eager's for every backend, in whatever order it computes, and a graph that fails has
changed nothing.

What draws from the default generator stays the operation that it is: the graph draws in the program's order, from the
generator itself. From where the program seeds that, reads or sets its state, its state is a tensor like any other's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.guards.source import CallSource
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.fake.outcome import TensorResult
from stator.pytorch.state.draws import Recipe, name_of, operator
from stator.pytorch.tensors.lowering import Call
from stator.pytorch.tensors.recording import record, record_function, record_method
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.facts import answer
from stator.space.protocol import models, register
from stator.space.value import Constant, ObjectValue, Unsupported, Value

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.pytorch.fake.outcome import Outcome
    from stator.pytorch.types import Host
    from stator.space.interfaces import Trace, Writer
    from stator.space.space import Space

__all__ = ["GeneratorValue", "draw", "drawn_from", "install"]

_CPU = torch.device("cpu")
#: methods that write random numbers, whatever was there before
_FILLING = frozenset(
    {"normal_", "uniform_", "random_", "bernoulli_", "exponential_", "geometric_", "cauchy_", "log_normal_"}
)
#: functions that multiply their first argument with random numbers, and do nothing else
_MASKING = frozenset({torch.nn.functional.dropout, torch.dropout})


def _refusal(operation: str) -> Unsupported:
    return Unsupported(errors.RandomStateAccess(operation))


class DefaultState:
    """The default generator, once the traced program has read or set its state: what draws takes that state."""

    def __init__(self, trace: Trace) -> None:
        self.generator: GeneratorValue | None = None


@models(torch.Generator)
class GeneratorValue(ObjectValue):
    """A generator; `state` is the tensor of the state that the traced program has brought it to."""

    __slots__ = ("changed", "device", "initial", "is_default", "seeds_all", "state")
    FIELDS = {"device": lambda self, space: Constant(self.device)}

    def __init__(self, cls: type = torch.Generator) -> None:
        super().__init__(cls)
        self.state: Value | None = None
        self.device = _CPU
        #: gives what it was last seeded with
        self.initial: Callable[[Space], int] = self._initial_before
        #: whether the traced program has drawn from it, or set its state
        self.changed = False
        self.is_default = False
        #: what `torch.manual_seed` was called with, which seeds other devices too
        self.seeds_all: int | None = None

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        self = cls(space.guard_type(host, source))
        self.host, self.source = host, source
        device, self.is_default = answer(space, self, _kind, "kind of generator")
        self.device = torch.device(device)
        return self

    @staticmethod
    def tp_new(space: Space, cls: Value, device: Value = Constant(_CPU)) -> Value:  # noqa: B008 (immutable)
        made = cls.force().as_host(space)
        if made is not torch.Generator or torch.device(space.known(device.force())) != _CPU:
            raise Unsupported(errors.UnsupportedCCall("torch.Generator"))
        self = GeneratorValue()
        self._be_like(space, torch.Generator())
        return self

    # -- the state --------------------------------------------------------------------------------------------------

    def now(self, space: Space) -> Value:
        """The state."""
        if self.state is None:
            assert self.source is not None
            if self.device != _CPU or (self.is_default and space.trace.recorder.effects.random):
                raise _refusal("torch.Generator.get_state")  # what the graph has drawn, only running it will tell
            with space.trace.recorder.state.at_entry():  # as the tensor is that a guard of it makes
                state = self.host.get_state()
                self.state = space.wrap(state, CallSource(_state_of, self.source, "state")).force()
            self._note(space)
        return self.state

    def advance(self, space: Space, state: Value) -> None:
        """The program brings it to another state."""
        space.mark_mutated(self)
        self.state, self.changed = state, True
        self._note(space)

    def _note(self, space: Space) -> None:
        if self.is_default:
            space.trace.extension(DefaultState).generator = self

    def _be_like(self, space: Space, shadow: torch.Generator) -> None:
        """A state that is known is a constant of the graph."""
        seed = shadow.initial_seed()
        self.state = space.existing(shadow.get_state(), "the state of a generator")
        self.initial = lambda space: seed

    def _initial_before(self, space: Space) -> int:
        return int(answer(space, self, _initial_seed, "initial_seed"))

    def get_state(self, space: Space) -> Value:
        return record_method(space, "clone", self.now(space))

    def set_state(self, space: Space, state: Value, /) -> Value:
        state = state.force()
        if self.device != _CPU or not isinstance(state, TensorValue) or _is_no_state(state):
            raise _refusal("torch.Generator.set_state")  # eager has the words for what is no state
        self.advance(space, record_method(space, "clone", state))
        self.initial = _unknown_seed
        return self

    def manual_seed(self, space: Space, seed: Value, /) -> Value:
        number = space.decide(seed.force())
        shadow = torch.Generator()
        if self.device != _CPU or type(number) is not int or not -(1 << 63) <= number < 1 << 64:
            raise _refusal("torch.Generator.manual_seed")
        shadow.manual_seed(number)
        self._be_like(space, shadow)
        assert self.state is not None
        self.advance(space, self.state)
        return self

    def initial_seed(self, space: Space) -> Value:
        return Constant(self.initial(space))

    def seed(self, space: Space) -> Value:
        raise _refusal("torch.Generator.seed")

    def clone_state(self, space: Space) -> Value:
        made = GeneratorValue()
        made.state, made.initial = self.now(space), self.initial
        return made

    # -- generated code ---------------------------------------------------------------------------------------------

    def held(self) -> Iterable[Value]:
        return () if self.state is None else (self.state,)

    def rebuilt(self, writer: Writer) -> str:
        name = str(writer.assign("generator", f"{writer.const(torch.Generator)}()"))
        writer.line(self._set_state(writer, name))
        return name

    def effects(self, writer: Writer) -> list[str]:
        assert self.source is not None
        if not self.changed:
            return []
        lines = [] if self.seeds_all is None else [f"{writer.const(torch.manual_seed)}({self.seeds_all})"]
        return [*lines, self._set_state(writer, writer.source(self.source))]

    def _set_state(self, writer: Writer, name: str) -> str:
        assert self.state is not None
        return f"{name}.set_state({writer.expr(self.state)})"


def _kind(generator: Host) -> tuple[str, bool]:
    return generator.device.type, generator is torch.default_generator


def _initial_seed(generator: Host) -> int:
    return int(generator.initial_seed())


def _unknown_seed(space: Space) -> int:
    raise _refusal("torch.Generator.initial_seed")


def _is_no_state(value: Any) -> bool:
    meta = value.meta
    return meta is None or (meta.dtype, meta.device, tuple(meta.shape)) != (torch.uint8, _CPU, (_size(),))


def _state_of(generator: Host) -> torch.Tensor:
    state: torch.Tensor = generator.get_state()
    return state


@functools.cache
def _size() -> int:
    return len(torch.Generator().get_state())


# -- drawing ----------------------------------------------------------------------------------------------------------


def drawn_from(trace: Trace, call: Call) -> GeneratorValue | None:
    """The generator whose state a call that draws is to be given; None where the graph draws from the default one."""
    default = trace.extension(DefaultState).generator
    given: Any = call.generator
    found: GeneratorValue | None = default if given is None or given.is_default else given
    return found


def draw(space: Space, call: Call, outcome: Outcome, generator: GeneratorValue) -> Value:
    """Record a call as a draw from the state of a generator."""
    if outcome.written:
        if call.target not in _FILLING or any(map(_needs_grad, call.operands[1:])):
            raise _refusal(f"{describe_callable(call.function)}, which writes an argument,")
        record_method(space, "copy_", call.operands[0], _drawn(space, call, call.operands, generator))
        return call.operands[0]
    if not isinstance(outcome.result, TensorResult):
        raise _refusal(f"{describe_callable(call.function)}, which gives more than a tensor,")
    if outcome.result.meta is not None and not outcome.result.meta.requires_grad:
        return _drawn(space, call, call.operands, generator)
    if call.function not in _MASKING:
        raise _refusal(f"{describe_callable(call.function)}, through which gradients flow,")
    # What a dropout does to ones is what it multiplies with.
    dropped: Value = call.operands[0]
    ones = record_function(space, torch.ones_like, _detached(space, dropped))
    mask = _drawn(space, call, [ones, *call.operands[1:]], generator)
    product: Value = record_method(space, "mul", dropped, mask)
    return product


def _drawn(space: Space, call: Call, operands: list[Value], generator: GeneratorValue) -> Value:
    name = name_of(call.function)
    if name is None:
        raise _refusal(f"a draw by {describe_callable(call.function)}")
    are_tensors = [isinstance(value, TensorValue) for value in operands]
    recipe = Recipe(*name, call.args, call.kwargs, tuple(are_tensors), not generator.is_default)
    tensors = [_detached(space, value) for value, is_tensor in zip(operands, are_tensors, strict=True) if is_tensor]
    numbers = [value for value, is_tensor in zip(operands, are_tensors, strict=True) if not is_tensor]
    args = [generator.now(space), space.new_list(tensors), space.new_list(numbers), Constant(recipe.text())]
    state, result = space.unpack(record(space, Call(operator(), "call_function", operator()), args, {}))
    generator.advance(space, state.force())
    return result.force()


def _needs_grad(value: Value) -> bool:
    return isinstance(value, TensorValue) and value.requires_grad


def _detached(space: Space, value: Value) -> Value:
    detached: Value = record_method(space, "detach", value) if _needs_grad(value) else value
    return detached


def _manual_seed(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """`torch.manual_seed`, which seeds all devices: those that are not in use yet when the graph has run."""
    seed = [*args, *kwargs.values()]
    if len(seed) != 1 or torch.cuda.is_initialized() or torch.accelerator.is_available():
        raise _refusal("torch.random.manual_seed")
    generator: Any = space.existing(torch.default_generator, "torch.default_generator")
    generator.manual_seed(space, seed[0])
    generator.seeds_all = space.decide(seed[0].force())
    seeded: Value = generator
    return seeded


def install() -> None:
    """Register the models."""
    register(torch.manual_seed, _manual_seed)
