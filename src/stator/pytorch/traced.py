"""What the PyTorch layer's parts see of a traced tensor, and of the operation that has made it.

`stator.pytorch.tensors.tensor.TensorValue` and `stator.pytorch.graph.operation.Operation` are what they meet; these
protocols name what is really used, so that what keeps tensors and operations imports nothing of what makes them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import torch.fx
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    from stator.guards.source import Source
    from stator.pytorch.fake.fake_executor import FakeExecutor
    from stator.pytorch.fake.metadata import TensorMeta
    from stator.pytorch.types import Args, Fake, FakeOperand, Function, Host, Kwargs, Number, Path
    from stator.space.interfaces import Writer
    from stator.space.value import Value

__all__ = ["Dims", "Operation", "Rebound", "ResultCheck", "Shapes", "TracedTensor", "TracedValue"]


class Dims(NamedTuple):
    """What of a tensor is to be symbols."""

    #: the dimensions whose sizes are, with torch's kind of symbol
    sizes: dict[int, object]
    #: those whose strides are
    strides: frozenset[int] = frozenset()
    #: the same for the tensors in a wrapper that have any, by their attributes
    inner: Mapping[str, Dims] = MappingProxyType({})
    #: the same for what a jagged tensor is a view of
    base: Dims | None = None

    def __bool__(self) -> bool:
        return bool(self.sizes or self.strides or self.inner)


class TracedValue(Protocol):
    """What a graph has a node for: a traced tensor, or a number that depends on symbolic sizes."""

    cls: type
    source: Source | None
    host: Host
    symbolic: ClassVar[bool]
    operation: Operation | None
    path: Path
    #: the recorder that it belongs to, which is put together from what sees this
    recorder: Any
    _node: torch.fx.Node | None

    @property
    def node(self) -> torch.fx.Node:
        """The FX node that computes it."""

    @property
    def fake(self) -> FakeOperand:
        """A fake tensor with its metadata and its aliases, made when needed; or torch's symbolic number."""


class TracedTensor(TracedValue, Protocol):
    """A traced tensor; see `stator.pytorch.tensors.tensor.TensorValue`."""

    meta: TensorMeta | None
    _fake: Fake | None

    @property
    def root(self) -> TracedTensor:
        """The tensor whose memory this one shares; itself, unless it is a view."""

    @property
    def requires_grad(self) -> bool:
        """Whether autograd records what is done to it."""


class Operation(Protocol):
    """One recorded call; see `stator.pytorch.graph.operation.Operation`."""

    function: Function
    #: what the program has called, if it is a part of another function
    called: Function
    args: Args
    kwargs: Kwargs
    key: object
    state: object
    step: int
    effectful: bool
    operands: list[Value]
    #: the symbols that are made by it, with where in its result they are found
    bindings: Any

    @property
    def recorder(self) -> Any:
        """The recorder that it belongs to, which is put together from what sees this."""

    @property
    def node(self) -> torch.fx.Node:
        """The FX node of the call."""

    @property
    def made_values(self) -> Sequence[TracedTensor]:
        """The tensors among its results."""

    def replay(self, fake_executor: FakeExecutor) -> None:
        """Run it on fake tensors."""

    def made(self, meta: TensorMeta | None, path: Path, alias: int | None = None, cls: type = ...) -> Any:
        """The traced tensor found at `path` of the result; `alias` is the operand whose memory it shares."""

    def made_number(self, number: Number, path: Path) -> Value:
        """The symbolic number found at `path` of the result."""


class Rebound(Protocol):
    """What a tensor object has become; see `stator.pytorch.objects.rebinding.Rebound`."""

    data: Any
    first: Any
    leaf: Any
    is_leaf: bool

    def made(self, writer: Writer) -> str:
        """The name of the leaf that the object is."""

    def lines(self, writer: Writer, name: str, wanted: bool) -> list[str]:
        """What makes the object of this name what it has become."""


class ResultCheck(Protocol):
    """What a trace has assumed of results of its graph."""

    def confirm(self) -> None:
        """The trace is over: make sure that what its graph does can be taken back."""

    def expressions(self, writer: Writer) -> list[str]:
        """What must be true when the graph has run, as expressions of the generated program."""


class Shapes(Protocol):
    """The symbols of one trace, as fake tensors need them; see `stator.pytorch.shapes.shapes.Shapes`."""

    #: the recorder that it belongs to, which is put together from what sees this
    recorder: Any

    @property
    def used_env(self) -> ShapeEnv | None:
        """The ShapeEnv; None as long as the trace has no symbols and makes none."""

    def fakify(self, value: TracedTensor, dims: Dims | None = None) -> Fake:
        """The fake tensor of an existing one, of which these sizes and strides are symbols."""
