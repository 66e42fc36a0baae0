"""What a residual program is when it is made, and the graph in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from stator.config import Config
    from stator.guards.intern import Output
    from stator.space import interfaces

__all__ = ["Graph", "Recovery", "Residual"]


class Recovery(Protocol):
    """What is done about a graph that fails; see `stator.pytorch.graph.undo.Recovery`."""

    save: str
    undo: str
    refused: str


class Graph(Protocol):
    """A compiled graph; see `stator.pytorch.graph.compiled_graph.CompiledGraph`."""

    callable: Callable[..., object]
    inputs: list[Output]
    located: Callable[[BaseException], object] | None
    gm: Any

    def recovery(self, recorder: Any, writer: interfaces.Writer, *, checked: bool) -> Recovery | None:
        """What generated code does about a failure of the graph, or of checks of its results."""


class Residual:
    """A generated program: its callable, its source text, what it must be handed, the graph inside it, and the settings
    that it was made under."""

    def __init__(
        self,
        function: Callable[..., object],
        text: str,
        outputs: Sequence[Output],
        graph: Graph | None,
        config: Config,
    ) -> None:
        self.function = function
        self.text = text
        self.outputs = outputs
        self.graph = graph
        self.config = config
