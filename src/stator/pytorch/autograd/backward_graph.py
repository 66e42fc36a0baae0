"""Code that the engine calls back, recorded in a graph of its own: the state it runs in, and what it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.state import global_state

if TYPE_CHECKING:
    from stator.pytorch.graph.subgraph import Subgraph
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.tensors.tensor import TensorValue

__all__ = ["as_in_backward", "gradient_of"]


def gradient_of(graph: Subgraph, output: TensorValue) -> TensorValue:
    """What comes back for a result: a tensor like it, of which nothing more is known, as an input of the graph."""
    fakes = output.recorder.fakes
    options = {"requires_grad": False, "memory_format": torch.contiguous_format}
    with torch.no_grad():
        like = fakes.executor.run(torch.empty_like, (output.fake,), options, [], lambda given, _: given).result
    return graph.example(like, "grad")


class as_in_backward:
    """The state in which the engine calls back: no gradients, and autocast off as outside of its block."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def __enter__(self) -> None:
        self.before = global_state.snapshot()
        self.recorder.state.switch(internals.set_grad_enabled, [False])
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                self.recorder.state.switch(torch.set_autocast_enabled, [device, False])

    def __exit__(self, *exc: object) -> None:
        for function, args in global_state.changes(global_state.snapshot(), self.before):
            self.recorder.state.switch(function, list(args))
