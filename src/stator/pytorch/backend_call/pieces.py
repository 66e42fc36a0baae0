"""A graph in pieces: each is compiled by itself, and one runs after the other."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch
import torch.fx

from stator.pytorch.backend_call.buckets import bounds, buckets_of
from stator.pytorch.backend_call.cuts import Cuts
from stator.pytorch.distributed.sending import sent_once
from stator.pytorch.graph.graph_module import outlined
from stator.pytorch.state import saved_on_cpu

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedValue
    from stator.pytorch.types import Function, GraphValue

__all__ = ["Piece", "compiled_in_pieces", "may_be_cut", "pieces_of"]

#: makes a function of a piece
Compile: TypeAlias = "Callable[[Piece], Function]"


class Piece:
    """A part of a graph that runs as one.

    Attributes:
        gm: the module of its own graph.
        inputs: its inputs in the order of the placeholders: each a node of its own graph with the value it stands for.
        takes: the nodes of the whole graph that are its inputs.
        gives: those that are its results.
    """

    def __init__(self, whole: torch.fx.GraphModule, nodes: list[torch.fx.Node], values: Any) -> None:
        mine = set(nodes)
        self.gives = [node for node in nodes if any(user not in mine for user in node.users)]
        self.gm, inputs = outlined(nodes, functools.partial(getattr, whole), self.gives)
        self.takes = list(inputs)
        self.inputs: list[tuple[torch.fx.Node, GraphValue]] = [(copy, values[node]) for node, copy in inputs.items()]


def may_be_cut(recorder: Recorder, gm: torch.fx.GraphModule) -> bool:
    """Whether the graph can be cut wherever it must: at what stands between pieces, and before what is sent once."""
    nodes = _calls_of(gm)
    between, behind = _between(nodes), sent_once(recorder, nodes)
    if not between and not behind:
        return True
    allowed = Cuts(recorder, nodes)
    return all(map(allowed, between)) and (not behind or any(map(allowed, behind)))


def pieces_of(recorder: Recorder, gm: torch.fx.GraphModule, inputs: list[TracedValue]) -> list[Piece | torch.fx.Node]:
    """The pieces in which the graph is handed over, and calls between them; none: it is handed over whole."""
    buckets = buckets_of(recorder)
    nodes = _calls_of(gm)
    between, behind = _between(nodes), sent_once(recorder, nodes)
    cuts: list[int] = []
    if buckets or behind:
        allowed = Cuts(recorder, nodes)
        cuts += bounds(buckets, nodes, inputs, allowed) if buckets else []
        cuts += itertools.islice(filter(allowed, behind), 1)
    begins = sorted({0, *cuts, *between, *(at + 1 for at in between), len(nodes)})
    parts = [nodes[begin:end] for begin, end in itertools.pairwise(begins)]
    if len(parts) < 2:
        return []
    return [part[0] if saved_on_cpu.is_boundary(part[0]) else Piece(gm, part, recorder.nodes.values) for part in parts]


def _calls_of(gm: torch.fx.GraphModule) -> list[torch.fx.Node]:
    return [node for node in gm.graph.nodes if node.op not in ("placeholder", "output")]


def _between(nodes: list[torch.fx.Node]) -> list[int]:
    """The positions of the calls that stand between pieces (see `saved_on_cpu`)."""
    return [at for at, node in enumerate(nodes) if saved_on_cpu.is_boundary(node)]


def compiled_in_pieces(
    gm: torch.fx.GraphModule, pieces: list[Piece | torch.fx.Node], compile_piece: Compile
) -> Function:
    """What runs the pieces as one function with the inputs and results of the whole graph."""
    inputs = gm.graph.find_nodes(op="placeholder")
    output = next(iter(gm.graph.find_nodes(op="output")))
    steps = [
        (compile_piece(piece), piece.takes, piece.gives) if isinstance(piece, Piece) else (_calling(piece), [], [])
        for piece in pieces
    ]
    last_use = {node: i for i, (_, takes, _) in enumerate(steps) for node in takes}
    over = [[node for node in takes if last_use[node] == i] for i, (_, takes, _) in enumerate(steps)]
    results = output.args[0]
    kept = set(output.all_input_nodes)

    def run(*arguments: object) -> tuple[object, ...]:
        known = dict(zip(inputs, arguments, strict=True))
        for (function, takes, gives), ended in zip(steps, over, strict=True):
            known.update(zip(gives, function(*[known[node] for node in takes]), strict=True))
            for node in ended:  # autograd decides what lives on
                if node not in kept:
                    del known[node]
        return tuple([known[node] if isinstance(node, torch.fx.Node) else node for node in results])

    return run


def _calling(node: torch.fx.Node) -> Function:
    """A call that stands between pieces: of no tensors, without a result."""
    function: Any = node.target

    def call() -> tuple[()]:
        function(*node.args)
        return ()

    return call
