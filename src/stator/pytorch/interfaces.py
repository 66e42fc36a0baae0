"""What the PyTorch layer's parts see of the recorder that they belong to.

`stator.pytorch.graph.recorder.Recorder` is what they meet; this protocol names what is really used, so that the parts
import nothing of what is put together from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from stator.guards.base import Guard
    from stator.pytorch.graph.effects import GraphEffects
    from stator.pytorch.graph.nodes import GraphNodes
    from stator.pytorch.graph.propagation import FakePropagation
    from stator.pytorch.graph.tracked import TrackedTensors
    from stator.pytorch.state.global_state import State
    from stator.pytorch.traced import ResultCheck
    from stator.space.interfaces import Frame, Trace
    from stator.space.value import Value

__all__ = ["Recorder"]

#: stator.pytorch.shapes.shapes.Shapes, and stator.pytorch.tensors.slots.Slots: they make values that have a recorder
Shapes: TypeAlias = Any
Slots: TypeAlias = Any


class Recorder(Protocol):
    """The graph of one trace; see `stator.pytorch.graph.recorder.Recorder`."""

    nodes: GraphNodes
    state: State
    shapes: Shapes
    fakes: FakePropagation
    effects: GraphEffects
    tracked: TrackedTensors
    checks: list[ResultCheck]
    extra_guards: list[Guard]
    resumed: list[Frame]
    goes_round: bool

    @property
    def trace(self) -> Trace:
        """The trace whose graph it is."""

    @property
    def slots(self) -> Slots:
        """What the slots of its tensors do."""

    @property
    def keeps_order(self) -> bool:
        """Whether the backend runs the operations as they were recorded, on the program's own tensors."""

    @property
    def traces_backward(self) -> bool:
        """Whether the backend is known to trace the backward pass of a graph when it compiles it."""

    @property
    def writes_last(self) -> bool:
        """Whether what the backend makes writes to existing tensors only when all else has been computed."""

    def record(self, call: Any) -> Value:
        """Record a call, and return the traced value of its result."""
