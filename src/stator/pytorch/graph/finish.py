"""The end of a trace: the graph is cleaned, checked, made a module and handed to the backend."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
import torch.fx

from stator import errors
from stator.errors import BackendError, StatorError
from stator.pytorch import internals
from stator.pytorch.graph.contract import backend_guards, in_context, is_member
from stator.pytorch.graph.graph_module import graph_module, sources_go_with
from stator.pytorch.graph.linked import check_outputs
from stator.pytorch.graph.located import Located
from stator.pytorch.graph.memory import memory_guard, must_run_in_order
from stator.pytorch.graph.node_meta import NodeMeta
from stator.pytorch.graph.unread import unread_results
from stator.pytorch.graph.versions import counting_writes
from stator.pytorch.state import global_state
from stator.pytorch.tensors.classes import is_plain_class
from stator.pytorch.tensors.tensor import TensorValue
from stator.report.stats import STATS
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder

__all__ = ["CompiledGraph", "finish"]


class CompiledGraph:
    """What a graph has become: `callable(*inputs) -> tuple`, the sources of the inputs, the module, its size.

    `located` tells where in the program an error of the module has come up, if the module itself is run; else None.
    """

    __slots__ = ("callable", "gm", "inputs", "located", "ops")

    def __init__(
        self, function: Callable[..., Any], inputs: list[Any], gm: Any, ops: int, located: Located | None
    ) -> None:
        self.callable = function
        self.inputs = inputs
        self.gm = gm
        self.ops = ops
        self.located = located


def finish(recorder: Recorder, outputs: list[Value]) -> CompiledGraph | None:
    """Compile what was recorded, with the given values as outputs."""
    graph = recorder.graph
    check_outputs(recorder, outputs)
    nodes = [value.node for value in outputs]  # type: ignore[attr-defined]
    recorder.leave_state()
    recorder.state.restore()
    last = graph.output(tuple(nodes))
    eliminate(recorder)
    unread = [] if recorder.keeps_order else unread_results(recorder)
    last.args = ((*nodes, *unread),)
    kept = (node for node in graph.nodes if node not in recorder.state_nodes)
    if not outputs and not any(node in recorder.keep or node in recorder.fallible for node in kept):
        return None
    settle_grad_mode(recorder)
    inputs = drop_unused_inputs(recorder)
    inputs = members_last(inputs)
    refuse_strangers(graph)
    graph.lint()
    root = torch.nn.Module()
    for name, item in recorder.attributes.items():
        setattr(root, name, item)
    gm = graph_module(root, graph)
    sources = grouped(inputs)
    compiled = call_backend(recorder, gm, inputs)
    showing = recorder.keep - recorder.state_nodes
    # Where handlers or effects wait for the error it is the frame that must go on, even from half of a write.
    acting = recorder.acting if recorder.exposed else recorder.acting | recorder.writing
    located = Located(gm, showing, acting) if compiled == gm.forward else None
    if compiled != gm.forward:
        compiled = counting_writes(compiled, recorder, inputs, outputs)
    if unread:
        compiled = _without_last(compiled, len(unread))
    if recorder.state_nodes:
        compiled = _leaving_state_alone(compiled)
    if any(isinstance(v, TensorValue) and not is_plain_class(v.cls) for v in inputs):
        compiled = without_overrides(compiled)
    return CompiledGraph(compiled, sources, gm, sum(node.op.startswith("call") for node in graph.nodes), located)


def without_overrides(function: Callable[..., Any]) -> Callable[..., Any]:
    """The compiled graph, whose operations have been through `__torch_function__` already."""

    def run(*args: Any) -> Any:
        with internals.DisableTorchFunctionSubclass():
            return function(*args)

    return run


def _without_last(compiled: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The compiled graph without its last results, which nobody has asked for."""

    def run(*args: Any) -> Any:
        return compiled(*args)[:-count]

    return run


def _leaving_state_alone(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """An exception must not leave the global state as the middle of the graph has made it."""

    def run(*args: Any) -> Any:
        before = global_state.snapshot()
        try:
            return compiled(*args)
        except BaseException:
            global_state.apply(before)
            raise

    return run


def refuse_strangers(graph: torch.fx.Graph) -> None:
    """What was made in the body of an operation cannot be used outside of it (see subgraph)."""
    if any(used.graph is not graph for node in graph.nodes for used in node.all_input_nodes):
        raise Unsupported(errors.NotReconstructible("a tensor made inside another operation"))


def eliminate(recorder: Recorder) -> None:
    """Remove operations nobody uses, except for those that act on something besides their result, or may fail."""
    graph = recorder.graph
    kept = recorder.keep | recorder.fallible.keys()
    for node in reversed(list(graph.nodes)):
        if node.op.startswith(("call", "get_attr")) and not node.users and node not in kept:
            graph.erase_node(node)


def settle_grad_mode(recorder: Recorder) -> None:
    """Keep only those switches of grad mode that an operation is run under."""
    switch = internals.set_grad_enabled
    now, last = recorder.state.entry[0], None
    for node in list(recorder.graph.nodes):
        if node.op == "call_function" and node.target is switch:
            if last is not None:
                recorder.graph.erase_node(last)
            last = node
        elif node.op.startswith("call") or node.op == "output":
            if last is not None and last.args[0] is now:
                recorder.graph.erase_node(last)
            elif last is not None:
                now = last.args[0]
            last = None
            if node.target is internals.enter_inference_mode or node in recorder.state_nodes:
                now = None  # other switches may have changed it


def drop_unused_inputs(recorder: Recorder) -> list[Any]:
    """Remove the inputs that are left without use; returns the values of the others, in order."""
    used = []
    for value in recorder.inputs:
        if value.node.users:
            used.append(value)
        else:
            recorder.graph.erase_node(value.node)
            value._node = None
    recorder.inputs.clear()
    binders = recorder.shapes.binders(used)
    for value in binders:
        if value not in used:
            assert value.node.op == "placeholder"
            used.append(value)
    order = {node: i for i, node in enumerate(recorder.graph.nodes)}
    return sorted(used, key=lambda value: order[value.node])


def _release_examples(gm: Any, *, show: bool) -> None:
    """The trace is over: example values are made now, for whoever looks at the graph later, or not at all."""
    for node in gm.graph.nodes:
        if isinstance(node.meta, NodeMeta):
            if show:
                node.meta.settle("example_value")
            node.meta.release()


def members_last(inputs: list[Any]) -> list[Any]:
    """The inputs in another order, here and in the graph: members of modules, which are handed over as one, last."""
    members = [value for value in inputs if is_member(value)]
    others = [value for value in inputs if not is_member(value)]
    last: Any = inputs[-1].node if inputs else None
    for value in members if others else ():
        if value.node is not last:
            last.append(value.node)
            last = value.node
    return others + members


def grouped(inputs: list[Any]) -> list[Any]:
    """The sources of the inputs; those of two or more members of modules as one tuple at the end."""
    count = sum(is_member(value) for value in inputs)
    sources = [value.source for value in inputs]
    return sources if count < 2 else [*sources[:-count], tuple(sources[-count:])]


def _compiled_in_context(recorder: Recorder, gm: Any, inputs: list[Any], backend: Any, examples: list[Any]) -> Any:
    """What the backend makes of the graph, and the TracingContext it was called in."""
    with sources_go_with(gm), in_context(recorder, gm, inputs) as context:
        try:
            return backend(gm, examples), context
        except Exception as e:
            if type(e).__name__ != "TensorifyScalarRestartAnalysis":
                raise
            recorder.shapes.need_floats()
    # AOTAutograd has tried with the elements of tensors as symbols, and has noted that it must do without them.
    try:
        with sources_go_with(gm), in_context(recorder, gm, inputs) as context:
            return backend(gm, examples), context
    finally:
        recorder.shapes.forget_floats()


def lie_apart(recorder: Recorder, inputs: list[Any]) -> bool:
    """Whether the inputs allow a backend to gather and reorder writes; guarded."""
    guard = memory_guard(recorder, inputs)
    if guard is None:
        return True
    recorder.extra_guards.append(guard)
    return bool(guard.fn.apart)  # type: ignore[attr-defined]


def call_backend(recorder: Recorder, gm: Any, inputs: list[Any]) -> Callable[..., Any]:
    """Hand the graph to the backend in the global state of the start, and check what comes back."""
    backend = recorder.trace.compile_region.backend
    name = str(getattr(backend, "name", None) or getattr(backend, "__name__", type(backend).__name__))
    examples = [recorder.example_input(value) for value in inputs]
    started = time.perf_counter()
    try:
        if recorder.keeps_order:
            compiled = backend(gm, examples)
        elif must_run_in_order(recorder, inputs) or not lie_apart(recorder, inputs):
            return gm.forward
        else:
            compiled, context = _compiled_in_context(recorder, gm, inputs, backend, examples)
            recorder.extra_guards += backend_guards(recorder, context)
    except StatorError:
        raise
    except Exception as e:
        raise BackendError(f"backend {name!r} failed: {type(e).__name__}: {e}", backend=name) from e
    finally:
        STATS.backend_seconds += time.perf_counter() - started
        _release_examples(gm, show=not getattr(backend, "keeps_order", False))
    if not callable(compiled):
        raise BackendError(f"backend {name!r} returned {type(compiled).__name__}, which is not callable", backend=name)
    return compiled
