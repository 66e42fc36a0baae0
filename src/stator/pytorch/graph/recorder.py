"""The recorder of one trace: its graph, and what belongs to the graph until the backend is called at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator.guards.base import Guard
from stator.pytorch.graph.effects import GraphEffects
from stator.pytorch.graph.finish import finish
from stator.pytorch.graph.nodes import GraphNodes
from stator.pytorch.graph.propagation import FakePropagation
from stator.pytorch.graph.record import record_call
from stator.pytorch.graph.tracked import TrackedTensors
from stator.pytorch.shapes.shapes import Shapes
from stator.pytorch.state.global_state import State
from stator.pytorch.tensors.slots import Slots

if TYPE_CHECKING:
    from collections.abc import Callable

    from stator.pytorch.graph.compiled_graph import CompiledGraph
    from stator.pytorch.tensors.lowering import Call
    from stator.pytorch.traced import ResultCheck
    from stator.space.interfaces import Frame, Trace, Writer
    from stator.space.value import Value

__all__ = ["Recorder"]


class Recorder:
    """The graph of one trace."""

    #: what the slots of its tensors do
    slots = Slots()

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.nodes = GraphNodes()
        self.effects = GraphEffects()
        self.state = State(trace, self.nodes, self.effects)
        self.shapes = Shapes(self)
        self.fakes = FakePropagation(self.shapes, self.state)
        self.tracked = TrackedTensors(trace, self.fakes)
        self.checks: list[ResultCheck] = []
        #: the step of the trace at which a call was recorded last
        self.recorded_at = 0
        self.extra_guards: list[Guard] = []
        #: the frames that go on after the graph break that ended the trace
        self.resumed: list[Frame] = []
        #: whether they go on in the code that was traced, as each round of a loop does
        self.goes_round = False

    @property
    def operations(self) -> int:
        """How many operations the graph has so far."""
        return len(self.nodes.operations)

    @property
    def keeps_order(self) -> bool:
        """Whether the backend runs the operations as they were recorded, on the program's own tensors."""
        return bool(getattr(self.trace.compile_region.backend, "keeps_order", False))

    @property
    def traces_backward(self) -> bool:
        """Whether the backend is known to trace the backward pass of a graph when it compiles it."""
        return bool(getattr(self.trace.compile_region.backend, "traces_backward", False))

    @property
    def writes_last(self) -> bool:
        """Whether what the backend makes writes to existing tensors only when all else has been computed."""
        backend = self.trace.compile_region.backend
        return not self.tracked.in_order and bool(getattr(backend, "writes_last", False))

    def record(self, call: Call) -> Value:
        """Record a call, and return the traced value of its result."""
        self.recorded_at = self.trace.steps
        return record_call(self, call)

    def examine(self, cls: type, *call: Any) -> None:
        """Torch is about to call the `__torch_dispatch__` of a class (see `subclasses.examination`)."""
        self.slots.examine(self, cls, *call)

    # -- the end ----------------------------------------------------------------------------------------------------

    def checked(self, writer: Writer) -> list[str]:
        """What was assumed of results of the graph, as expressions."""
        for check in self.checks:
            check.confirm()
        return [text for check in self.checks for text in check.expressions(writer)]

    def finish(self, outputs: list[Value]) -> CompiledGraph | None:
        """Compile the graph; None where there is nothing to run."""
        return finish(self, outputs)

    def state_lines(self, writer: Writer) -> list[str]:
        """Generated lines that leave the global state as the traced program left it."""
        return self.state.lines(writer)

    def around(self, writer: Writer) -> tuple[str, str] | None:
        """What generated code does first, and how it undoes that if it fails then."""
        return self.state.modes.around(writer)

    @property
    def is_watched(self) -> Callable[[], bool]:
        """What tells when the graph has failed whether a hook of the program's has seen it run."""
        return self.state.hooks.is_watched

    def guards_first(self) -> list[Guard]:
        """Guards to check before all others."""
        return self.state.guards() if self.tracked.existing or self.state.used else []

    def guards_last(self) -> list[Guard]:
        """Guards that rest on all others."""
        return self.extra_guards + self.tracked.guards() + self.shapes.guards()

    def close(self) -> None:
        """The trace has ended: put the process's state back, and let go of what existed before."""
        self.state.restore()
        self.state.modes.give_back()
        self.fakes.let_go()
        for value in self.tracked.existing:  # what an object was before it became another is only here
            value.host = None
