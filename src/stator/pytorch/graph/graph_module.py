"""GraphModules whose generated source dies with them."""

from __future__ import annotations

import contextlib
import linecache
import operator
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch.fx

from stator.pytorch import internals

if TYPE_CHECKING:
    import torch

__all__ = ["graph_module", "outlined", "sources_go_with"]


def graph_module(root: torch.nn.Module, graph: torch.fx.Graph) -> torch.fx.GraphModule:
    """The module that runs a graph.

    torch.fx keeps the source of each one for tracebacks, and never lets go of it. `(-2) ** x` it writes as `-2 ** x`,
    which is `-(2 ** x)`: that is a call of `pow` instead.
    """
    for node in graph.find_nodes(op="call_function", target=operator.pow):
        if isinstance(node.args[0], int | float) and node.args[0] < 0:
            node.target = pow
    made = torch.fx.GraphModule(root, graph)
    source: Any = type(made).forward
    weakref.finalize(made, _forget, source.__code__.co_filename).atexit = False
    return made


def outlined(
    nodes: Sequence[torch.fx.Node], attribute_of: Callable[[str], Any], gives: Sequence[torch.fx.Node] = ()
) -> tuple[torch.fx.GraphModule, dict[torch.fx.Node, torch.fx.Node]]:
    """Nodes that follow each other in a graph, as a graph of their own, which has the same metadata.

    Args:
        nodes: in their order.
        attribute_of: gives the modules, graphs and tensors that the nodes refer to.
        gives: those that are its results.

    Returns:
        Its module, and its placeholders by the nodes of the other graph that they stand for.
    """
    graph, root, mine = torch.fx.Graph(), torch.nn.Module(), set(nodes)
    takes = dict.fromkeys(used for node in nodes for used in node.all_input_nodes if used not in mine)
    inputs = {node: graph.placeholder(node.name) for node in takes}
    copies = dict(inputs)
    for node in nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if node.op in ("get_attr", "call_module"):
            setattr(root, str(node.target), attribute_of(str(node.target)))
    graph.output(tuple([copies[node] for node in gives]))
    for node, copy in copies.items():
        copy.meta = node.meta
    return graph_module(root, graph), inputs


@contextlib.contextmanager
def sources_go_with(owner: torch.fx.GraphModule) -> Iterator[None]:
    """The source of GraphModules made meanwhile, by a backend, is kept as long as the owner lives."""
    before = set(internals.generated_sources.eval_cache)
    try:
        yield
    finally:
        made = [name for name in list(internals.generated_sources.eval_cache) if name not in before]
        if made:
            weakref.finalize(owner, _forget, *made).atexit = False


def _forget(*names: str) -> None:
    for name in names:
        linecache.cache.pop(name, None)
        internals.generated_sources.eval_cache.pop(name, None)
