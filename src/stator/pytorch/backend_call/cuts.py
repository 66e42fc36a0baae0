"""Where a graph can be cut in two, so that running one after the other is the same as running the whole.

What one piece gives the next are tensors of torch's own class, and sizes. No cut is possible

- where anything else would cross it: a tuple of results, the token of an autocast region, a DTensor;
- between the first use of memory and the last operation that writes it: what is written in a later piece the earlier
  one has not seen, whose backward pass may need what was there;
- where the global state (grad mode, autocast) is not that of the beginning, in which each piece begins;
- between what gradients are asked of (`autograd.grad`) and what it was computed of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.autograd.sent_again import Checkpoints
from stator.pytorch.shapes.unbacked import symbols_of
from stator.pytorch.state import saved_on_cpu
from stator.pytorch.tensors.tensor import TensorValue

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch.fx

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import GraphValue

__all__ = ["Cuts"]

_NESTING = "how deep autocast regions are nested"
_STEPS: dict[Any, int] = {
    torch.autocast_increment_nesting: 1,
    torch.autocast_decrement_nesting: -1,
    torch.clear_autocast_cache: 0,
}


class Cuts:
    """The possible cuts of a graph.

    Args:
        nodes: its operations, in order.
    """

    def __init__(self, recorder: Recorder, nodes: list[torch.fx.Node]) -> None:
        self.recorder = recorder
        self.place = {node: position for position, node in enumerate(nodes)}
        self.possible = [True] * len(nodes)
        for first, last in self._bound_together(nodes):
            self.possible[first + 1 : last + 1] = [False] * (last - first)

    def __call__(self, position: int) -> bool:
        """Whether the node at this position can be the first of a piece."""
        return self.possible[position]

    def _bound_together(self, nodes: list[torch.fx.Node]) -> Iterator[tuple[int, int]]:
        """Positions of nodes that must be in one piece, with all between them."""
        for node in nodes:
            if not self._may_cross(node):
                yield self._span([node, *node.users])
        yield from self._writing(nodes)
        if self.recorder.tracked.engine.backward_steps:
            yield 0, len(nodes) - 1
        yield from self._other_state(nodes)
        yield from self._computed_again(nodes)

    def _may_cross(self, node: torch.fx.Node) -> bool:
        value: GraphValue = self.recorder.nodes.values.get(node)
        if isinstance(value, TensorValue):
            numbers: tuple[Any, ...] = () if value.meta is None else (*value.meta.shape, *value.meta.stride)
            return _is_plain(value) and not any(map(self._is_unbacked, numbers))
        return value is not None and bool(value.symbolic) and not self._is_unbacked(value.number)

    def _is_unbacked(self, number: Any) -> bool:
        """Whether it is only known when the graph runs: the next piece could not know that it is the same number."""
        return any(map(self.recorder.shapes.env.is_unbacked_symint, symbols_of(number)))

    def _span(self, nodes: list[torch.fx.Node]) -> tuple[int, int]:
        places = [self.place[node] for node in nodes if node in self.place]
        return min(places), max(places)

    def _writing(self, nodes: list[torch.fx.Node]) -> Iterator[tuple[int, int]]:
        """From the first use of each memory to the last operation that writes it."""
        first: dict[GraphValue, int] = {}
        last: dict[GraphValue, int] = {}
        for position, node in enumerate(nodes):
            for used in (node, *node.all_input_nodes):
                root = getattr(self.recorder.nodes.values.get(used), "root", None)
                first.setdefault(root, position)
            last.update(dict.fromkeys(self.recorder.effects.writes.get(node, ()), position))
        return ((first.get(root, 0), position) for root, position in last.items())

    def _other_state(self, nodes: list[torch.fx.Node]) -> Iterator[tuple[int, int]]:
        """From where it is left to where it is back. The graph ends in the state in which it begins."""
        switches = [(position, *_switch(node)) for position, node in enumerate(nodes) if self._is_of_state(node)]
        entry = {what: to for _, what, to in switches if what is not _NESTING}
        entry[internals.set_grad_enabled] = self.recorder.state.entry[0]
        entry[_NESTING] = 0
        now = dict(entry)
        left: int | None = None
        for position, what, to in switches:
            now[what] = now[_NESTING] + to if what is _NESTING else to
            if now == entry and left is not None:
                yield left, position
                left = None
            elif now != entry and left is None:
                left = position
        if left is not None:
            yield left, len(nodes) - 1

    def _computed_again(self, nodes: list[torch.fx.Node]) -> Iterator[tuple[int, int]]:
        """From where the function of a checkpoint begins to where it ends."""
        for begun, ended, _ in self.recorder.trace.extension(Checkpoints).found:
            if begun in self.place:
                yield self._span([begun, ended])

    def _is_of_state(self, node: torch.fx.Node) -> bool:
        if saved_on_cpu.is_boundary(node):
            return False  # it stands between the pieces
        return node.target is internals.set_grad_enabled or node in self.recorder.effects.state_nodes


def _switch(node: torch.fx.Node) -> tuple[object, Any]:
    """What a node sets, and to what: `set_autocast_enabled("cpu", True)`."""
    if node.target in _STEPS:
        return _NESTING, _STEPS[node.target]
    if node.target is internals.set_grad_enabled:
        return node.target, node.args[0]
    return (node.target, *node.args[:-1]), node.args[-1] if node.args else None


def _is_plain(value: TensorValue) -> bool:
    """Whether sizes, strides and a type of elements are all there is to it."""
    return value.cls is torch.Tensor and value.meta is not None and not any(value.meta.bits)
