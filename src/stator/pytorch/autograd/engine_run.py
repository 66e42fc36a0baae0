"""A run of the autograd engine as an operation of the graph: its arguments, and how it is recorded."""

from __future__ import annotations

import inspect
import traceback
from typing import TYPE_CHECKING

import torch
import torch.autograd.graph

from stator import errors
from stator.pytorch.fake.failure import Failure, describe_callable
from stator.pytorch.nesting import values_in
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.attributes import MISSING
from stator.space.protocol import NONE
from stator.space.signals import Restart
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.tensors.lowering import Call
    from stator.pytorch.types import Host
    from stator.space.space import Space

__all__ = [
    "FAILS",
    "OTHERWISE",
    "arguments_of",
    "leave_runs_to_python",
    "leave_to_python",
    "need_of_its_own",
    "refusal",
    "run",
    "tensors_in",
    "with_tuples",
]

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


#: the parameters of the functions that run the engine which are one tensor or several
_SEVERAL = frozenset({"tensors", "outputs", "inputs", "grad_tensors", "grad_outputs"})


def with_tuples(
    space: Space, host: Host, args: list[Value], kwargs: dict[str, Value]
) -> tuple[list[Value], dict[str, Value]]:
    """The arguments of a call with a tuple in place of an iterator over tensors (`model.parameters()`), as in torch."""
    names = inspect.signature(host).parameters
    placed = dict(zip(names, args, strict=False)) | kwargs
    found = {name: _tuple(space, placed[name].force()) for name in names if name in placed and name in _SEVERAL}
    positional = [found.get(name, arg) for name, arg in zip(names, args, strict=False)] + args[len(names) :]
    return positional, {name: found.get(name, arg) for name, arg in kwargs.items()}


def _tuple(space: Space, value: Value) -> Value:
    is_iterator = space.host_lookup(value.cls, "__next__") is not MISSING
    return space.new_tuple(list(space.unpack(value))) if is_iterator else value


def tensors_in(space: Space, value: Value) -> list[TensorValue]:
    """The tensors that an argument consists of."""
    return tensors_among(values_in(space, value.force()))


def run(recorder: Recorder, call: Call, brk: errors.Break, batched: bool = False) -> Value:
    """Record a run of the engine; the graph ends before it, with this break, if it fails."""
    call.key = None  # metadata does not tell where a tensor has come from
    call.reads_history = True
    steps = recorder.tracked.engine.backward_steps
    steps.append(recorder.trace.steps)
    try:
        return recorder.record(call)
    except (Failure, Unsupported):
        # The fake tensors have lost what the engine has used before it failed. If it failed for want of what an earlier
        # run has used, that belongs to the program's error too.
        if batched and not recorder.keeps_order:
            leave_to_python(recorder, call.operands, brk)
        raise Restart(steps[0], brk) from None


def need_of_its_own(tensor: TensorValue, brk: errors.Break) -> None:
    """What uses a new tensor must be another graph than what makes it, for autograd to know one from the other.

    A backend may compute both at once: gradients then do not pass through the tensor that it gives.
    """
    if tensor.operation is not None and tensor.requires_grad and tensor.node.users:
        raise Restart(tensor.operation.step + 1, brk)


def leave_runs_to_python(recorder: Recorder, error: Exception) -> None:
    """A backend has failed on the graph. If that was in a run of the engine, ordinary Python makes the program's own.

    AOTAutograd differentiates once more what the engine does there, and cannot always: the second derivative of `abs`
    is a tensor without memory, which it doesn't trace.
    """
    if not recorder.tracked.engine.backward_steps or recorder.trace.compile_region.fullgraph:
        return
    files = {frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)}
    if torch.autograd.graph.__file__ in files:
        leave_to_python(recorder, [], refusal(torch.autograd.grad, "the backend fails on a graph with it"))


def leave_to_python(recorder: Recorder, operands: list[Value], brk: errors.Break) -> None:
    """End the graph before anything differentiable: what goes back through a compiled graph in batches loses, to torch,
    the gradients of its own, without an error."""
    made = tensors_among([*recorder.nodes.values.values(), *operands])
    steps = [value.operation.step for value in made if value.requires_grad and value.operation is not None]
    if steps:
        raise Restart(min(steps), brk)
