"""A graph as the backend is given it: whole or in pieces, with examples of the inputs, each in its TracingContext.

One that is like an earlier one is not given to it again (`alike.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch.autograd.sent_again import Checkpoints
from stator.pytorch.backend_call.alike import Alike
from stator.pytorch.backend_call.contract import Inputs, in_context
from stator.pytorch.backend_call.pieces import compiled_in_pieces, pieces_of
from stator.pytorch.distributed.sending import sending_each
from stator.pytorch.graph.graph_module import sources_go_with
from stator.pytorch.shapes.assertions import insert_asserts
from stator.pytorch.subclasses.lost_views import without_lost_views
from stator.pytorch.tensors.tensor import TensorValue

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.backend_call.tracing_context import Context
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedValue
    from stator.pytorch.types import Function

__all__ = ["compiled_under_contract", "example_of"]


def compiled_under_contract(
    recorder: Recorder, gm: torch.fx.GraphModule, inputs: list[TracedValue], backend: Function
) -> tuple[Function, list[Context]]:
    """What the backend makes of the graph, and the TracingContexts it was called in: one for each piece.

    AOTAutograd may try with the elements of tensors as symbols, and begin again.
    """
    insert_asserts(recorder, gm)
    if not recorder.keeps_order:
        _read_copies(gm, {value.node for value in inputs if recorder.shapes.is_offered(value)})
    if recorder.traces_backward:
        recorder.trace.extension(Checkpoints).take_out(gm)
    recorder.shapes.offer_floats()
    try:
        made, contexts = _with_floats(recorder, gm, inputs, backend)
    finally:
        recorder.shapes.forget_floats()
    return made if made == gm.forward else without_lost_views(made, recorder, inputs), contexts


def _with_floats(
    recorder: Recorder, gm: torch.fx.GraphModule, inputs: list[TracedValue], backend: Function
) -> tuple[Function, list[Context]]:
    try:
        return _compiled(recorder, gm, inputs, backend)
    except Exception as e:
        if type(e).__name__ != "TensorifyScalarRestartAnalysis":
            raise
        recorder.shapes.need_floats()
    # It has noted that it must do without them.
    return _compiled(recorder, gm, inputs, backend)


def _read_copies(gm: torch.fx.GraphModule, floats: set[torch.fx.Node]) -> None:
    """Let the graph read numbers of 64 bits from copies, but those of the tensors of floats.

    AOTAutograd knows what is in a float64 input, by a symbol of its own; where it can make no tensor of the symbol, it
    makes a constant of it, for which nobody has a guard. Floats have our symbols. Inductor takes clones and what else
    changes nothing (`x.detach()`) out, and would read the input again: a number is copied by negating it twice.
    """
    reading = [
        node
        for node in gm.graph.find_nodes(op="call_method", target="item")
        if node.all_input_nodes[0] not in floats and _may_be_input(node.all_input_nodes[0])
    ]
    for node in reading:
        (read,) = node.all_input_nodes
        with gm.graph.inserting_before(node):
            negated = gm.graph.call_function(torch.neg, (read,))
            copy = gm.graph.call_function(torch.neg, (negated,))
        negated.meta, copy.meta = dict(read.meta), dict(read.meta)
        node.replace_input_with(read, copy)
    if reading:
        gm.recompile()


def _may_be_input(node: torch.fx.Node) -> bool:
    """Whether it is an input of 64 bits, or may be one to a backend: what is computed of two is none."""
    example = node.meta.get("example_value")
    is_double = isinstance(example, torch.Tensor) and example.dtype is torch.float64
    return is_double and len(node.all_input_nodes) < 2 and node.target is not torch.scalar_tensor


def _compiled(
    recorder: Recorder, gm: torch.fx.GraphModule, inputs: list[TracedValue], backend: Function
) -> tuple[Function, list[Context]]:
    contexts: list[Context] = []

    def compiled(part: torch.fx.GraphModule, given: Inputs) -> Function:
        with sources_go_with(gm), sending_each(recorder, gm), in_context(recorder, part, given) as context:
            contexts.append(context)
            made: Function = backend(part, [example_of(value, context) for _, value in given])
            return made

    pieces = pieces_of(recorder, gm, inputs)
    if not pieces:
        alike = Alike(recorder, gm, inputs)
        made = alike.made()
        if made is None:
            made = compiled(gm, [(value.node, value) for value in inputs])
            alike.remember(made, contexts[0])
        return made, contexts
    return compiled_in_pieces(gm, pieces, lambda piece: compiled(piece.gm, piece.inputs)), contexts


def example_of(value: TracedValue, context: Context | None = None) -> object:
    """What the backend is shown for an input; in its own mode, if an earlier piece computes it."""
    if context is None or value.node.op == "placeholder" or not isinstance(value, TensorValue):
        return value.fake if value.host is None else value.host
    assert value.meta is not None
    with context.fake_mode:
        return value.meta.make()
