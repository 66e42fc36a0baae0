"""What the PyTorch layer's parts see of the recorder that they belong to.

`stator.pytorch.graph.recorder.Recorder` and `Operation` are what they meet; these protocols name what is really
used, so that the parts import nothing of what is put together from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch.fx

    from stator.guards.base import Guard
    from stator.pytorch.fake.fake_executor import FakeExecutor
    from stator.space.interfaces import Frame, Trace
    from stator.space.value import Value

__all__ = ["Operation", "Recorder"]


class Operation(Protocol):
    """One recorded call; see `stator.pytorch.graph.recorder.Operation`."""

    args: Any
    kwargs: Any
    function: Any
    state: Any
    step: int
    effectful: bool
    operands: list[Value]
    made_values: list[Any]
    node: Any
    result: Any
    bindings: Any
    key: Any

    @property
    def recorder(self) -> Any:
        """What it is recorded by."""

    def made(self, meta: Any, path: tuple[int, ...], alias: int | None = None) -> Any:
        """The traced tensor found at `path` of the result; `alias` is the operand whose memory it shares."""

    def made_number(self, number: Any, path: tuple[int, ...]) -> Value:
        """The symbolic number found at `path` of the result."""


class Recorder(Protocol):
    """The graph of one trace; see `stator.pytorch.graph.recorder.Recorder`."""

    graph: torch.fx.Graph
    whole: torch.fx.Graph
    values: dict[Any, Any]
    inputs: list[Any]
    numbers: dict[Any, Any]
    elements: dict[Any, Any]
    extra_guards: list[Guard]
    tensors: list[Any]
    state: Any
    keep: set[Any]
    state_nodes: set[Any]
    ops: int
    attributes: dict[str, Any]
    written: dict[Any, None]
    random: bool
    acting: set[Any]
    writing: set[Any]
    fallible: dict[Any, Any]
    writes: dict[Any, dict[Any, int]]
    exposed: bool
    rewritten: dict[Any, Any]
    hooked: set[Any]
    restructured: dict[int, Any]
    in_order: bool
    own_gradients: dict[Any, Any]
    resumed: list[Frame]
    overrides: Any

    @property
    def trace(self) -> Trace:
        """The trace whose graph it is."""

    @property
    def shapes(self) -> Any:
        """The symbols of this trace."""

    @property
    def slots(self) -> Any:
        """What the slots of its tensors do."""

    @property
    def acts(self) -> bool:
        """Whether the graph does anything else than compute, write tensors and draw random numbers."""

    @property
    def inert(self) -> bool:
        """Whether running the graph so far would show nowhere but in its results."""

    @property
    def keeps_order(self) -> bool:
        """Whether the backend runs the operations as they were recorded, on the program's own tensors."""

    @property
    def writes_last(self) -> bool:
        """Whether what the backend makes writes to existing tensors only when all else has been computed."""

    @property
    def symbolic(self) -> dict[Any, Any]:
        """The descriptions that hold symbols of this trace."""

    @property
    def fake_executor(self) -> FakeExecutor:
        """This trace's own fake tensors, which keep aliases and symbols."""

    def adopt(self, value: Any) -> None:
        """An existing tensor has been met: guard and describe it."""

    def node_of(self, value: Any) -> Any:
        """The node of a value used for the first time: a graph input, or a part of an operation's result."""

    def example(self, value: Any) -> Any:
        """A fake tensor to show for a value."""

    def example_input(self, value: Any) -> Any:
        """What the backend is shown for an input."""

    def describe(self, tensor: Any) -> Any:
        """The description of a real or fake tensor of this trace."""

    def admit_symbols(self, env: Any) -> None:
        """The trace has symbols from now on."""

    def materialise(self, value: Any) -> None:
        """Make the fake tensor of a value."""

    def replay(self) -> None:
        """Run everything recorded so far that has no fake tensors yet, in order and in the state it ran in."""

    def record(self, call: Any) -> Value:
        """Record a call, and return the traced value of its result."""

    def noted(self, value: Any) -> None:
        """A new tensor has got its fake tensor: writes to the storage it shares must be seen in it."""

    def change_state(self, function: Any, args: list[Any], kwargs: dict[str, Any] | None = None) -> Any:
        """Perform a change of the global state, and record it."""

    def switch(self, function: Any, args: list[Any]) -> None:
        """Change the global state as C code does around a call: nothing of it appears in the graph."""

    def leave_state(self) -> None:
        """End the graph with the nodes that put the global state back as it was at its beginning."""

    def add_state_node(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None) -> Any:
        """Add a call that changes the global state to the graph."""

    def enter_inference(self, mode: bool) -> tuple[Any, Any]:
        """Enter inference mode for real and in the graph; the object to leave it by, and its node."""
