"""The inputs of a graph: values that existed before the trace, in the order in which they were first used."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from stator.guards.source import AttrSource, DictItemSource
from stator.pytorch import internals
from stator.pytorch.graph.node_meta import NodeMeta

if TYPE_CHECKING:
    import torch.fx

    from stator.guards.naming import Names
    from stator.guards.source import Source
    from stator.pytorch.traced import TracedValue

__all__ = ["GraphInputs", "grouped", "is_member", "members_last"]


class GraphInputs:
    """The inputs of one graph."""

    def __init__(self, graph: torch.fx.Graph) -> None:
        self.graph = graph
        self.values: list[TracedValue] = []
        self._last: torch.fx.Node | None = None
        self._names: dict[str, int] = {}

    def add(self, value: TracedValue) -> torch.fx.Node:
        """Make a value that existed before the trace an input of the graph."""
        assert value.source is not None
        name = self._unique(_input_name(value.source, value.recorder.trace.root.names))
        with self.graph.inserting_after(internals.root(self.graph) if self._last is None else self._last):
            node = self.graph.placeholder(name)
        node.meta = NodeMeta(lambda: value.recorder.fakes.example(value))
        self._last = node
        self.values.append(value)
        return node

    def _unique(self, name: str) -> str:
        # The text of a source may be long; its end, which is kept, need not be unique.
        count = self._names[name] = self._names.get(name, 0) + 1
        return name if count == 1 else self._unique(f"{name}_{count}")

    def take_used(self, binders: Callable[[list[TracedValue]], list[TracedValue]]) -> list[TracedValue]:
        """Remove the inputs that are left without use; returns the values of the others, in order.

        `binders` tells the symbols on which inputs depend: these stay, whether they are used or not.
        """
        used = []
        for value in self.values:
            if value.node.users:
                used.append(value)
            else:
                self.graph.erase_node(value.node)
                value._node = None
        self.values.clear()
        for value in binders(used):
            if value not in used:
                assert value.node.op == "placeholder"
                used.append(value)
        order = {node: i for i, node in enumerate(self.graph.nodes)}
        return sorted(used, key=lambda value: order[value.node])


def _input_name(source: Source, names: Names) -> str:
    """A readable name of a graph input: what the program calls it."""
    name = names.identifier(source)
    return f"arg_{name}" if name[0].isdigit() or name == "self" else name


def is_member(value: TracedValue) -> bool:
    """Whether an input is a parameter or buffer found in a module."""
    base = value.source
    if isinstance(base, DictItemSource):
        base = base.base
        return isinstance(base, AttrSource) and base.name in internals.MODULE_TENSORS
    return False


def members_last(inputs: list[TracedValue]) -> list[TracedValue]:
    """The inputs in another order, here and in the graph: members of modules, which are handed over as one, last."""
    members = [value for value in inputs if is_member(value)]
    others = [value for value in inputs if not is_member(value)]
    last: torch.fx.Node = inputs[-1].node if inputs else None
    for value in members if others else ():
        if value.node is not last:
            last.append(value.node)
            last = value.node
    return others + members


def grouped(inputs: list[TracedValue]) -> list[Source | tuple[Source, ...]]:
    """The sources of the inputs; those of two or more members of modules as one tuple at the end."""
    count = sum(is_member(value) for value in inputs)
    sources: list[Source] = [value.source for value in inputs]  # type: ignore[misc]
    return [*sources] if count < 2 else [*sources[:-count], tuple(sources[-count:])]
