"""What the `__torch_dispatch__` of a class of the program's does besides computing: it is traced before it is run.

Fake propagation runs it, a compiler does so again when it takes the graph apart, and what is compiled never does. So
it must do nothing but compute, and what else it reads must be guarded:

    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.calls += 1         # breaks the graph: eager execution would count each operation once
        ...

Each call that torch is about to make is traced first, on the fake tensors that it is about to be made with, into a
graph that is thrown away. Classes of torch's own are taken at their word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.metadata import is_symbol
from stator.pytorch.graph.subgraph import Subgraph
from stator.pytorch.nesting import value_of
from stator.pytorch.shapes.symbols import SymValue
from stator.pytorch.tensors.classes import attributes_of, is_wrapper
from stator.pytorch.tensors.subclass import overrides_off
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import is_immutable, register
from stator.space.value import Raised, Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Args, Fake, Host, Kwargs, Operator
    from stator.space.interfaces import Trace
    from stator.space.space import Space

__all__ = ["examine", "install"]


def examine(recorder: Recorder, cls: type, func: Operator, types: Host, args: Args, kwargs: Kwargs) -> None:
    """Torch is about to call `cls.__torch_dispatch__`. Raises Unsupported where that is not sure to only compute."""
    if cls.__module__.partition(".")[0] == "torch":
        return
    state = recorder.trace.extension(_State)
    with internals.disable_current_modes():
        signature = _Signature(recorder).of((cls, func, types, args, kwargs))
        key = (recorder.trace.effects.count, signature)
        if key not in state.examined:
            _Examination(recorder).run(cls, func, types, args, kwargs)
            if signature is not None:
                state.examined.add(key)


class _State:
    """Whether a call is being traced to examine it."""

    def __init__(self, trace: Trace) -> None:
        self.at_work = False
        #: calls that only compute, by what they are given, and how much the program had changed then
        self.examined: set[object] = set()


class _Signature:
    """What tells calls apart: the metadata of tensors, and which of them are the same."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.seen: dict[int, int] = {}

    def of(self, call: Host) -> object:
        """The signature of a call; None where not everything about it can be told."""
        try:
            found = self.part(call)
            hash(found)
        except (TypeError, _Untold):
            return None
        return found

    def part(self, part: Host) -> object:
        if isinstance(part, torch.Tensor):
            known = len(self.seen)
            position = self.seen.setdefault(id(part), known)
            return position if position < known else (position, self.tensor(part))
        if type(part) in (tuple, list):
            return type(part), *map(self.part, part)
        if type(part) is dict:
            return dict, *[(key, self.part(item)) for key, item in part.items()]
        if not is_immutable(type(part)) and not callable(part):
            raise _Untold
        return type(part), repr(part) if isinstance(part, float | complex) else part

    def tensor(self, fake: Fake) -> object:
        if is_wrapper(type(fake)):
            return type(fake), *self.recorder.fakes.outline(fake), self.part(attributes_of(fake))
        meta = self.recorder.fakes.describe(fake)
        if meta is None or meta.symbolic:
            raise _Untold
        return meta


class _Untold(Exception):
    """There is more to a part of a call than its signature tells."""


class _Examination:
    """One call, traced into a graph of its own."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.space = recorder.trace.space
        self.graph = Subgraph(recorder)
        self.values: dict[int, Value] = {}

    def run(self, cls: type, func: Operator, types: Host, args: Args, kwargs: Kwargs) -> None:
        """Trace the call."""
        space, trace = self.space, self.recorder.trace
        given = [value_of(space, part, self.known) for part in (func, tuple(types), tuple(args), dict(kwargs))]
        state, shapes = trace.extension(_State), self.recorder.shapes
        effects, self.recorder.effects = self.recorder.effects, type(self.recorder.effects)()
        before, outer = trace.effects.count, state.at_work
        state.at_work = shapes.reads_constants = True
        try:
            with self.graph.recording(), overrides_off(space):
                space.call(space.getattr(space.class_value(cls), "__torch_dispatch__"), given, {})
        except Raised:
            pass  # as it will when it is run
        finally:
            self.recorder.effects, state.at_work, shapes.reads_constants = effects, outer, outer
        if trace.effects.count != before:
            raise Unsupported(errors.UnsupportedTensorSubclass(cls.__qualname__, _ACTS))
        if not self.recorder.keeps_order and self.graph.free([]):
            raise Unsupported(errors.UnsupportedTensorSubclass(cls.__qualname__, _READS))  # a constant to AOTAutograd

    def known(self, part: Host) -> Value | None:
        """The value of a part of an argument."""
        if id(part) not in self.values:
            made = self.made(part)
            if made is None:
                return None
            self.values[id(part)] = made
        return self.values[id(part)]

    def made(self, part: Host) -> Value | None:
        name = f"given_{len(self.values)}"
        if isinstance(part, torch.Tensor):
            tensor = self.tensor(part)
            self.graph.input(name, tensor)
            return tensor
        if is_symbol(part):
            return SymValue.computed(self.recorder, part, self.graph.graph.placeholder(name))
        return self.space.existing(part) if callable(part) else None

    def tensor(self, fake: Fake) -> TensorValue:
        """A value for a fake tensor, whose metadata may be changed."""
        if is_wrapper(type(fake)):
            made = TensorValue(self.recorder, type(fake), None)
            made._fake = fake
            return made
        with self.recorder.fakes.executor.mode:
            made = TensorValue(self.recorder, torch.Tensor, self.recorder.fakes.describe(fake))
            made._fake = fake.detach()
        return made


_ACTS = "its __torch_dispatch__ does more than compute"
_READS = "its __torch_dispatch__ uses tensors or varying numbers that it is not given"


def _corrected(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`return_and_correct_aliasing(func, args, kwargs, out)`: `out`, in the memory that the operator's schema says.

    Nobody looks at the result of an examination.
    """
    if not space.trace.extension(_State).at_work:
        raise Unsupported(errors.UnsupportedTensorSubclass("return_and_correct_aliasing", "it changes their memory"))
    return args[3] if len(args) == 4 else kwargs["out"]


def install() -> None:
    """Register the models."""
    register(internals.correct_aliasing, _corrected)
