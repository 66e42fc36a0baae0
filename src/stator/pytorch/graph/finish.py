"""The end of a trace: the graph is cleaned, made a module and handed to the backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.fx

from stator import errors
from stator.pytorch import internals
from stator.pytorch.backend_call.call import call_backend
from stator.pytorch.graph.compiled_graph import (
    CompiledGraph,
    beginning_steps,
    leaving_state_alone,
    lending,
    outline_checkpoints,
    resizing,
    take_out_resizes,
    with_zeros,
    without_last,
    without_overrides,
)
from stator.pytorch.graph.graph_module import graph_module
from stator.pytorch.graph.inputs import grouped, members_last
from stator.pytorch.graph.linked import check_outputs
from stator.pytorch.graph.located import Located
from stator.pytorch.graph.regions import Regions
from stator.pytorch.graph.unread import eliminate, unread_results
from stator.pytorch.graph.versions import counting_writes
from stator.pytorch.reliance import Reliances
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedTensor, TracedValue

__all__ = ["finish"]


def finish(recorder: Recorder, outputs: list[Value]) -> CompiledGraph | None:
    """Compile what was recorded, with the given values as outputs."""
    graph = recorder.nodes.graph
    check_outputs(recorder, outputs)
    nodes = [value.node for value in outputs]  # type: ignore[attr-defined]
    recorder.state.leave()
    recorder.state.restore()
    effects = recorder.effects
    last = graph.output(tuple(nodes))
    eliminate(recorder)
    unread = [] if recorder.keeps_order else unread_results(recorder)
    last.args = ((*nodes, *unread),)
    if not outputs and not any(node.op.startswith("call") and node not in effects.state_nodes for node in graph.nodes):
        recorder.shapes.note_sizes([])
        return None
    settle_grad_mode(recorder)
    inputs = members_last(recorder.nodes.inputs.take_used(recorder.shapes.binders))
    refuse_strangers(graph)
    recorder.trace.extension(Regions).outline()
    outline_checkpoints(recorder)
    graph.lint()
    root = torch.nn.Module()
    for name, item in recorder.nodes.attributes.items():
        setattr(root, name, item)
    gm = graph_module(root, graph)
    take_out_resizes(recorder, gm)
    sources = grouped(inputs)
    compiled = call_backend(recorder, gm, inputs)
    recorder.shapes.note_sizes([*inputs, *outputs])
    showing = effects.keep - effects.state_nodes - effects.asserting
    # Where handlers or effects wait for the error it is the frame that must go on, even from half of a write.
    acting = effects.acting if effects.exposed else effects.acting | effects.writing
    located = Located(gm, showing, acting, effects.asserting) if compiled == gm.forward else None
    if compiled != gm.forward:
        compiled = beginning_steps(compiled)
        compiled = counting_writes(compiled, recorder, inputs, outputs)
        compiled = with_zeros(compiled, outputs)
    compiled = resizing(compiled, recorder, inputs, outputs)
    if recorder.tracked.lent:
        compiled = lending(compiled, *places_of(recorder.tracked.lent, inputs))
    if unread:
        compiled = without_last(compiled, len(unread))
    compiled = recorder.trace.extension(Reliances).counting_failures(compiled)
    compiled = leaving_state_alone(compiled, recorder)
    compiled = without_overrides(compiled, inputs)
    return CompiledGraph(compiled, sources, gm, sum(node.op.startswith("call") for node in graph.nodes), located)


def places_of(lent: dict[TracedTensor, TracedTensor], inputs: list[TracedValue]) -> tuple[list[int], list[int]]:
    """Where the inputs are that existing tensors become as leaves, and those that they were before (-1: nowhere)."""
    place = {value: index for index, value in enumerate(inputs)}
    leaves = [leaf for leaf in lent if leaf in place]
    return [place[leaf] for leaf in leaves], [place.get(lent[leaf], -1) for leaf in leaves]


def refuse_strangers(graph: torch.fx.Graph) -> None:
    """What was made in the body of an operation cannot be used outside of it (see subgraph)."""
    if any(used.graph is not graph for node in graph.nodes for used in node.all_input_nodes):
        raise Unsupported(errors.NotReconstructible("a tensor made inside another operation"))


def settle_grad_mode(recorder: Recorder) -> None:
    """Keep only those switches of grad mode that an operation is run under."""
    switch = internals.set_grad_enabled
    now, last = recorder.state.entry[0], None
    for node in list(recorder.nodes.graph.nodes):
        if node.op == "call_function" and node.target is switch:
            if last is not None:
                recorder.nodes.graph.erase_node(last)
            last = node
        elif node.op.startswith("call") or node.op == "output":
            if last is not None and last.args[0] is now:
                recorder.nodes.graph.erase_node(last)
            elif last is not None:
                now = last.args[0]
            last = None
            if node.target is internals.enter_inference_mode or node in recorder.effects.state_nodes:
                now = None  # other switches may have changed it
