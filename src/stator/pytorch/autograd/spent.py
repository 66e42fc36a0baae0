"""Tensors that leave a graph in which their gradients have been computed: nothing is left to compute them again.

    loss.backward()
    return loss          # in eager, loss.backward() raises from now on

The graph gives such a tensor without its history. Generated code gives it one that raises what the engine would.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.autograd.history import Rest, rest_of
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.tensors.recording import record_method
from stator.space.signals import Restart

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.tensors.tensor import TensorValue
    from stator.pytorch.traced import TracedTensor
    from stator.space.interfaces import Writer

__all__ = ["graph_output", "refuse_written"]


def graph_output(writer: Writer, tensor: TensorValue) -> str:
    """The variable that holds a tensor which the graph has made."""
    name = _output(writer, tensor)
    if tensor in tensor.recorder.tracked.engine.retaining:
        writer.line(f"{name}.retain_grad()")
    return name


def _output(writer: Writer, tensor: TensorValue) -> str:
    recorder = tensor.recorder
    if _rest(recorder, tensor) is Rest.WHOLE:
        return writer.graph_output(tensor)
    if _rest(recorder, tensor) is Rest.PARTS:
        raise _too_early(recorder)
    plain = writer.expr(record_method(recorder.trace.space, "detach", tensor))
    return writer.assign("t", f"{writer.const(spent)}({plain})")


def refuse_written(recorder: Recorder) -> None:
    """Existing tensors whose new history has been used up, in part or whole: generated code cannot give them that."""
    if any(_rest(recorder, tensor) is not Rest.WHOLE for tensor in recorder.effects.written):
        raise _too_early(recorder)


def _rest(recorder: Recorder, tensor: TracedTensor) -> Rest:
    """What is left of a tensor's history."""
    if not recorder.tracked.engine.backward_steps or not tensor.requires_grad:
        return Rest.WHOLE
    recorder.fakes.replay()  # written to, it has a longer history
    return Rest.WHOLE if tensor.fake.grad_fn is None else rest_of(tensor.fake)


def _too_early(recorder: Recorder) -> Restart:
    """The graph is to end before gradients are computed."""
    why = "a result keeps a part of what it uses up"
    brk = errors.AutogradCall(describe_callable(torch.autograd.backward), why)
    return Restart(recorder.tracked.engine.backward_steps[0], brk)


def spent(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with a history through which no gradients can be computed any more."""
    with torch.enable_grad():
        found: torch.Tensor = internals.DelayedError(_words(), 2)(tensor, torch.zeros((), requires_grad=True))[0]
        return found


def _words() -> str:
    """What the engine says."""
    global _said
    if not _said:
        with torch.enable_grad():
            leaf = torch.zeros((), requires_grad=True)
            used = leaf * leaf
            torch.autograd.grad(used, leaf)
            try:
                torch.autograd.grad(used, leaf)
            except RuntimeError as error:
                _said = str(error)
    return _said


_said = ""
