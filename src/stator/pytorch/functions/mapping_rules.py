"""The `vmap` of an autograd Function: what is done for a whole batch in place of each of its examples."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.autograd.backward_graph import Witness
from stator.pytorch.functions.call_parts import is_own
from stator.pytorch.graph.subgraph import Subgraph
from stator.pytorch.state.saved_hooks import SavedHooks
from stator.pytorch.tensors.tensor import TensorValue, tensors_among
from stator.space.protocol import NONE
from stator.space.signals import DoFirst
from stator.space.value import NotKnown, Raised, Unsupported, Value

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch.fx

    from stator.pytorch.types import GraphValue
    from stator.space.space import Space

__all__ = ["MappingRule", "trace_rules"]

#: of how many tensors each may be mapped over or not
_MOST_TENSORS = 3


class MappingRule:
    """What `vmap` does, traced for arguments of which some are mapped over, in their first dimension.

    Args:
        out_dims: the dimension of each result that is the batch's.
    """

    def __init__(self, traced: Subgraph, results: list[TensorValue], out_dims: tuple[int | None, ...]) -> None:
        self.traced = traced
        self.results = results
        self.out_dims = out_dims
        self.free = traced.free([*results])
        #: the operands that the graph is called with, after the batches
        self.places: list[int] = []
        self.graph: torch.fx.GraphModule

    def close(self, operands: Sequence[GraphValue]) -> None:
        """Finish the graph."""
        self.places = [next(i for i, other in enumerate(operands) if other is value) for value in self.free]
        self.graph = self.traced.close(self.results, self.free)


def trace_rules(
    space: Space, function: Value, inputs: list[Value], parts: list[Value]
) -> dict[tuple[bool, ...], MappingRule] | None:
    """The rules of a Function whose call is mapped, for all that may be mapped of it; None if it has none."""
    around = space.trace.extension(SavedHooks)
    tensors = tensors_among(inputs)
    cls: type = space.known(function)
    if not around.inside("vmap"):
        return {}
    if not is_own(space, cls, "vmap") or len(tensors) > _MOST_TENSORS:
        return None
    rules: dict[tuple[bool, ...], MappingRule] = {}
    for pattern in itertools.product((True, False), repeat=len(tensors)):
        what = f"instruction {space.trace.steps}: a vmap that cannot be traced {pattern}"
        if not any(pattern) or what in space.trace.done_first:
            continue
        with around.around_vmap() as details:
            try:
                rule = _traced(space, function, inputs, parts, iter(pattern), details)
            except (Raised, Unsupported):
                rule = None
        if rule is None:
            raise DoFirst(what)
        rules[pattern] = rule
    return rules


def _traced(
    space: Space, cls: Value, inputs: list[Value], parts: list[Value], mapped: Any, details: Sequence[Value]
) -> MappingRule | None:
    if not details:
        return None
    function = space.getattr(cls, "vmap")
    graph = Subgraph(space.trace.recorder)
    size = details[0].force()
    number = size.fake if size.symbolic else space.known(size)  # type: ignore[attr-defined]
    batches = [_batch(graph, v, number) if isinstance(v, TensorValue) and next(mapped) else v for v in inputs]
    dims = [NONE if a is b else space.fresh(0) for a, b in zip(batches, inputs, strict=True)]
    info = space.call(space.existing(internals.vmap_info), list(details), {})
    with graph.recording(), Witness(space, function) as witness:
        given = space.call(function, [info, space.new_tuple(dims), *batches], {}).force()
    found, out_dims = [part.force() for part in space.unpack(given)]
    results = [r.force() for r in space.unpack(found)] if found.isa(tuple) else [found]
    single = not out_dims.isa(tuple)
    out = [space.known(dim.force()) for dim in ([out_dims] * len(results) if single else space.unpack(out_dims))]
    if witness.acts or not len(results) == len(out) == len(parts) or NotKnown in out:
        return None
    if not all(isinstance(value, TensorValue) for value in [*results, *parts]):
        return None
    return MappingRule(graph, tensors_among(results), tuple(out))


def _batch(graph: Subgraph, value: TensorValue, number: int | torch.SymInt) -> TensorValue:
    """Examples like this one."""
    with value.recorder.fakes.executor.mode, torch.no_grad():
        like = value.fake.new_empty((number, *value.fake.shape))
    return graph.example(like.requires_grad_(value.requires_grad))
