"""What running a graph does besides computing its results, noted as its nodes are recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stator.models.stdlib.clocks import Clock
from stator.models.stdlib.critical_section import CriticalSection
from stator.pytorch import internals

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import torch.fx

    from stator.pytorch.fake.outcome import Outcome
    from stator.pytorch.traced import Operation, TracedTensor

__all__ = ["GraphEffects", "has_own_version"]


class GraphEffects:
    """The effects of one graph."""

    __slots__ = (
        *("acting", "asserting", "drawing", "exposed", "fallible", "keep", "once", "random", "rewritten"),
        *("state_nodes", "writes", "writing", "written"),
    )

    def __init__(self) -> None:
        #: existing tensors whose contents the graph changes
        self.written: dict[TracedTensor, None] = {}
        #: all tensors, by their roots, whose contents the graph changes
        self.rewritten: dict[TracedTensor, Operation] = {}
        #: the nodes that write tensors, by how much the versions of these grow
        self.writes: dict[torch.fx.Node, dict[TracedTensor, int]] = {}
        #: the nodes that write existing tensors: one that fails may have written part of it
        self.writing: set[torch.fx.Node] = set()
        #: whether the graph draws random numbers, the nodes that do, and those that do anything else than that,
        #: computing and writing
        self.random = False
        self.drawing: set[torch.fx.Node] = set()
        self.acting: set[torch.fx.Node] = set()
        #: those of them that must not run a second time
        self.once: set[torch.fx.Node] = set()
        #: the nodes that change the global state
        self.state_nodes: set[torch.fx.Node] = set()
        #: all nodes that are there for more than their results; and those that may fail when they run
        self.keep: set[torch.fx.Node] = set()
        self.fallible: dict[torch.fx.Node, Operation] = {}
        #: those that check what the trace has assumed of numbers in tensors
        self.asserting: set[torch.fx.Node] = set()
        #: whether more than tensors may show that an operation has failed when something had been written or drawn
        self.exposed = False

    @property
    def acts(self) -> bool:
        """Whether the graph does anything else than compute, write tensors and draw random numbers."""
        return bool(self.acting)

    @property
    def inert(self) -> bool:
        """Whether running the graph so far would show nowhere but in its results."""
        return not (self.random or self.acting or self.written or self.state_nodes)

    def note(
        self, node: torch.fx.Node, operation: Operation, outcome: Outcome, written: Sequence[TracedTensor]
    ) -> None:
        """A node has been recorded that writes to tensors with these roots, one for each that the outcome tells of."""
        for root in written:
            self.rewritten[root] = operation
            if root.host is not None:
                self.written[root] = None
                self.writing.add(node)
        trace = operation.recorder.trace
        trace.extension(Clock).note_operation()
        section = trace.extension(CriticalSection)
        if section:
            section.note_operation(writes=node in self.writing)
        if written:
            counts = self.writes[node] = {}
            operands = [operation.operands[index] for index in outcome.written]
            for root, operand, count in zip(written, operands, outcome.counts, strict=True):
                grown = 0 if has_own_version(operand) else count
                counts[root] = max(counts.get(root, 0), grown)  # two operands in one memory have one version
        if outcome.fallible:
            self.fallible[node] = operation
        self.random |= outcome.random
        if outcome.random:
            self.drawing.add(node)
        if outcome.effectful:
            self.keep.add(node)
        if operation.function is internals.assert_scalar:
            self.asserting.add(node)

    def writers_of(self, tensors: Iterable[TracedTensor]) -> frozenset[Operation]:
        """What has last written to tensors; of existing ones, to any that exist: two may lie in one memory."""
        roots = {tensor.root for tensor in tensors}
        is_existing = any(root.host is not None for root in roots)
        written = self.rewritten.items()
        return frozenset(by for root, by in written if root in roots or (is_existing and root.host is not None))

    def drop(self, node: torch.fx.Node) -> None:
        """A node that was noted is in the graph no more."""
        for noted in (self.acting, self.once, self.keep):
            noted.discard(node)
        self.fallible.pop(node, None)

    def note_state(self, node: torch.fx.Node) -> None:
        """A node has been recorded that changes the global state."""
        self.keep.add(node)
        self.state_nodes.add(node)


def has_own_version(tensor: Any) -> bool:
    """Whether a tensor is `x.data`, or a view of it: the memory is that of `x`, and its version is not."""
    root = tensor.root
    while tensor is not root and tensor.operation is not None:
        operation = tensor.operation
        if operation.function is getattr and operation.args[1:] == ("data",):
            return True
        # an object that has become another tensor is made of none with its own memory
        tensor = next((operand for operand in operation.operands if getattr(operand, "root", None) is root), root)
    return False
