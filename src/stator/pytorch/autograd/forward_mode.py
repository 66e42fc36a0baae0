"""Forward-mode differentiation: tangents travel beside the tensors, in levels that begin and end within a graph.

A level that the program enters is entered while tracing too, so that the fake tensors have tangents; its beginning and
its end are nodes of the graph. What leaves the graph has no tangents: a trace that ends inside of a level is made
again, with a break before it. Nothing is traced in a level that has begun outside (see `other_tracers.at_work`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch.autograd import forward_ad

from stator import errors
from stator._core import CodePolicy, set_code_policy
from stator.pytorch.fake.failure import Failure
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.state.within_graph import WithinGraph
from stator.pytorch.tensors.lowering import Call, lower_call
from stator.pytorch.tensors.recording import record_function
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.protocol import NONE, register
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.types import Function
    from stator.space.interfaces import Trace
    from stator.space.space import Space


class Levels:
    """The level of one trace: there is one at most, left before the trace ends."""

    def __init__(self, trace: Trace) -> None:
        self.open: WithinGraph | None = None


def _broken(function: Function) -> errors.Break:
    return errors.ForwardModeCall(f"torch.autograd.forward_ad.{function.__name__}")


def _refusal(function: Function) -> Unsupported:
    return Unsupported(_broken(function))


def _enter(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    levels = space.trace.extension(Levels)
    if args or kwargs or levels.open is not None or not WithinGraph.may_be_entered(space.trace):
        raise _refusal(forward_ad.enter_dual_level)
    levels.open = WithinGraph(space.trace, _broken(forward_ad.enter_dual_level), forward_ad.exit_dual_level)
    return space.fresh(levels.open.enter(forward_ad.enter_dual_level))


def _exit(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    recorder, levels = space.trace.recorder, space.trace.extension(Levels)
    if args or levels.open is None or recorder.state.open[-1] is not levels.open or not _of_level(space, kwargs):
        raise _refusal(forward_ad.exit_dual_level)
    recorder.fakes.replay()  # what was recorded in the level is run in it
    levels.open.leave()
    levels.open = None
    return NONE


def _of_level(space: Space, kwargs: dict[str, Value]) -> bool:
    """Whether a call is about the level of the trace."""
    return not kwargs or (set(kwargs) == {"level"} and space.known(kwargs["level"].force()) in (None, 0))


def _make_dual(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if space.trace.extension(Levels).open is None or len(args) != 2 or not _of_level(space, kwargs):
        raise _refusal(forward_ad.make_dual)
    return record_function(space, forward_ad.make_dual, *args)


def _unpack_dual(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if space.trace.extension(Levels).open is None or len(args) != 1 or not _of_level(space, kwargs):
        raise _refusal(forward_ad.unpack_dual)
    call = lower_call(space, Call(forward_ad.unpack_dual, "call_function", forward_ad.unpack_dual), args, {})
    call.key = None  # metadata does not tell whether there is a tangent
    try:
        result = space.trace.recorder.record(call)
    except Failure:
        raise _refusal(forward_ad.unpack_dual) from None
    for made in tensors_among(map(Value.force, space.unpack(result))):
        _find_memory(made)
    return result


def _find_memory(made: Any) -> None:
    """A tangent lies where the tensor lies that it was made of."""
    tracked, storage = made.recorder.tracked, storage_of(made.fake)
    for other in [*tracked.existing, *tracked.made]:
        if other is not made and other._fake is not None and storage_of(other._fake) == storage:
            made.root = other.root
            return


def install() -> None:
    """Register the models."""
    models: dict[Function, Function] = {
        forward_ad.enter_dual_level: _enter,
        forward_ad.exit_dual_level: _exit,
        forward_ad.make_dual: _make_dual,
        forward_ad.unpack_dual: _unpack_dual,
    }
    for function, model in models.items():
        register(function, model)
        set_code_policy(function.__code__, CodePolicy.RUN_RECURSIVELY)
