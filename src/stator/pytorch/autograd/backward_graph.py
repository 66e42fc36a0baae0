"""Code that the engine calls back, recorded in a graph of its own: its state, what it is given, and does it act?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.state import global_state
from stator.pytorch.state.saved_hooks import SavedHooks
from stator.space.identity.reachability import leads_to_any

if TYPE_CHECKING:
    from stator.pytorch.graph.subgraph import Subgraph
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.tensors.tensor import TensorValue
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["Witness", "as_in_backward", "gradient_of", "is_inside", "takes_tangents"]


def gradient_of(graph: Subgraph, output: TensorValue) -> TensorValue:
    """What comes back for a result: a tensor like it, of which nothing more is known, as an input of the graph."""
    fakes = output.recorder.fakes
    options = {"requires_grad": False, "memory_format": torch.contiguous_format}
    with torch.no_grad():
        like = fakes.executor.run(torch.empty_like, (output.fake,), options, [], lambda given, _: given).result
    return graph.example(like, "grad")


def takes_tangents(space: Space) -> bool:
    """Whether tangents travel beside the tensors: in a level, or in a function that is differentiated forwards."""
    return internals.forward_level() >= 0 or is_inside(space, "forward mode")


def is_inside(space: Space, kind: str) -> bool:
    """Whether the program is in a transform of torch.func, of this kind (see `SavedHooks.inside`)."""
    return space.trace.extension(SavedHooks).inside(kind)


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


class Witness:
    """A context in which code is traced that will run at another time, or more than once: does it act on anything?

        n = [0]
        y.register_hook(lambda g: n.append(g))    # on what the program has made, too

    Args:
        code: the functions that are called.
    """

    def __init__(self, space: Space, *code: Value) -> None:
        self.space = space
        self.code = code
        self.effects = space.trace.effects
        self.before = self.effects.count
        self._seeing = self.effects.witnessed()

    def __enter__(self) -> Witness:
        self.seen = self._seeing.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self._seeing.__exit__(None, None, None)

    @property
    def acts(self) -> bool:
        """Whether something has changed that others than the code itself lead to."""
        return self.effects.count != self.before or leads_to_any(self.space.trace, self.seen, self.code)
