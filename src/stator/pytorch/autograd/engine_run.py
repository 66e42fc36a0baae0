"""A run of the autograd engine as an operation of the graph: whether it can be one, and how it is recorded."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from stator import errors
from stator.guards.guard import GlobalState
from stator.pytorch.autograd.history import leaves_reached
from stator.pytorch.autograd.onlookers import is_engine_unwatched, who_watches_the_engine
from stator.pytorch.fake.failure import Failure, describe_callable
from stator.pytorch.nesting import values_in
from stator.pytorch.tensors.latent import rely_on_leaf
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.protocol import NONE
from stator.space.signals import Restart
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.tensors.lowering import Call
    from stator.pytorch.traced import TracedTensor
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = ["FAILS", "OTHERWISE", "arguments_of", "in_the_way", "name_of", "refusal", "run", "tensors_in"]

#: why a call breaks that is no operation of the graph, whatever its arguments are
OTHERWISE = "it is called in a way that is not recorded"
FAILS = "it fails, or gives tensors that cannot be recorded"


def refusal(host: Host, why: str) -> errors.Break:
    """The break at a call that runs the engine."""
    return errors.AutogradCall(describe_callable(host), why)


def arguments_of(host: Host, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value] | None:
    """The arguments of a call by their names; None where they do not fit."""
    signature = inspect.signature(host)
    try:
        found = signature.bind(*args, **kwargs).arguments
    except TypeError:
        return None
    return {name: found.get(name, NONE).force() for name in signature.parameters}


def tensors_in(space: Space, value: Value) -> list[TensorValue]:
    """The tensors that an argument consists of."""
    return tensors_among(values_in(space, value.force()))


def in_the_way(recorder: Recorder, ends: list[TensorValue], until: list[TensorValue]) -> str:
    """Why a graph cannot compute gradients, or nothing: they go on outside, or somebody sees them on their way."""
    if not recorder.trace.config.trace_backward:
        return "stator.config.trace_backward is off"
    if recorder.nodes.graph is not recorder.nodes.whole:
        return "it is called in a function that an operation of the graph runs"
    if recorder.tracked.hooked:
        return "a hook that was registered before waits for gradients"
    onlooker = who_watches_the_engine()
    if onlooker:
        return onlooker
    leaves = leaves_reached(recorder, [t.fake for t in ends], [t.fake for t in until])
    if leaves is None:
        return f"gradients go on into what was computed before: {_from_before(recorder)}"
    recorder.trace.guard(GlobalState(is_engine_unwatched, "nobody sees the autograd engine at work"))
    for leaf in leaves:
        rely_on_leaf(leaf)
    return ""


def _from_before(recorder: Recorder) -> str:
    """The names of the tensors which autograd has operations before the trace for."""
    found = [name_of(value) for value in recorder.tracked.existing if value.requires_grad and not value.host.is_leaf]
    return ", ".join(found[:3])


def name_of(value: TracedTensor) -> str:
    """How the program calls an existing tensor."""
    return "a tensor" if value.source is None else value.source.expr()


def run(recorder: Recorder, call: Call, brk: errors.Break) -> Value:
    """Record a run of the engine; the graph ends before it, with this break, if it fails."""
    call.key = None  # metadata does not tell where a tensor has come from
    call.reads_history = True
    steps = recorder.tracked.backward_steps
    steps.append(recorder.trace.steps)
    try:
        return recorder.record(call)
    except (Failure, Unsupported):
        # The fake tensors have lost what the engine has used before it failed. If it failed for want of what an earlier
        # run has used, that belongs to the program's error too.
        raise Restart(steps[0], brk) from None
