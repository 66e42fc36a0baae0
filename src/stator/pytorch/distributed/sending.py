"""Whether a backend sends what eager execution does: each of equal collectives, and in a checkpoint all again.

A backend that traces the backward pass computes again what it needs there, when it needs it. In eager execution all
that was sent before the last tensor that is saved is sent again, in the order of the program. The two are the same if
nothing after that is computed again, and each collective is computed of the one before it.

A checkpoint around the graph runs all of it again, up to where the last tensor is saved. What a backend makes of a
graph saves all at its end. So it is cut behind what is saved last, if it communicates after that.
"""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch import internals
from stator.pytorch.autograd.sent_again import is_boundary
from stator.pytorch.distributed.operators import calls_in, communicates, in_a_group
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.nesting import is_sequence
from stator.pytorch.state import saved_hooks
from stator.pytorch.tensors.classes import is_wrapper
from stator.pytorch.tensors.lowering import fill
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import NotKnown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    import torch.fx

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation
    from stator.pytorch.types import Host
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["computed_again", "is_sent_again", "results_in", "sending_each", "sent_once"]


def is_sent_again(recorder: Recorder, nodes: list[torch.fx.Node]) -> bool:
    """Whether what these nodes may send is sent again for their backward pass."""
    wants = any(getattr(recorder.nodes.values.get(node), "requires_grad", False) for node in nodes)
    return wants and torch.is_grad_enabled() and any(_may_send(recorder, node) for node in nodes)


def results_in(space: Space, result: Value) -> list[torch.fx.Node]:
    """The nodes of the tensors among the results of a function."""
    result = result.force()
    if is_sequence(result):
        return [node for part in space.unpack(result) for node in results_in(space, part)]
    return [result.node] if isinstance(result, TensorValue) else []


def computed_again(
    recorder: Recorder, nodes: list[torch.fx.Node], options: dict[str, Any], results: list[torch.fx.Node]
) -> tuple[list[torch.fx.Node], str]:
    """Those of a function's nodes that are computed again; and why that would not send again what it sends in eager.

    Args:
        options: of the checkpoint, as far as they are known.
        results: the nodes of what the function returns.
    """
    if NotKnown in options.values() or recorder.nodes.graph is not recorder.nodes.whole:
        return [], "and its options vary, or it is in the body of an operation"
    if recorder.keeps_order:
        return nodes, ""
    last, saved = _last_saving(recorder, nodes)
    nodes = nodes[: last + 1]
    stops = options["early_stop"] is True and not any(map(is_boundary, nodes))
    if recorder.traces_backward and not (stops and _sends_in_order(recorder, nodes, saved, results)):
        return [], "and a backend would do it again in another order"
    return nodes, ""


def sending_each(recorder: Recorder, gm: torch.fx.GraphModule) -> AbstractContextManager[object]:
    """In which AOTAutograd leaves equal collectives of one tensor apart: a rank that runs ordinary Python sends each.

    It finds them among all operations that are equal, and merges all or none.
    """
    merging = recorder.trace.config.merge_collectives
    if not merging and in_a_group() and any(_may_send(recorder, node) for node in gm.graph.nodes):
        return internals.aot_config.patch(cse=False)
    return nullcontext()


def sent_once(recorder: Recorder, nodes: list[torch.fx.Node]) -> range:
    """Where a graph is to be cut, because a checkpoint around it does not run again what is sent behind; any will do.

    These are the positions between what is saved last and what is sent next, if there is anything of both.
    """
    if not recorder.traces_backward or not recorder.state.entry[0] or not in_a_group():
        return range(0)
    sending = [position for position, node in enumerate(nodes) if _sends(recorder, node)]
    last = _last_saving(recorder, nodes)[0] if sending else -1
    behind = [position for position in sending if position > last]
    if last < 0 or not behind or not saved_hooks.are_counted(recorder.trace):
        return range(0)
    return range(last + 1, behind[0] + 1)


def _may_send(recorder: Recorder, node: torch.fx.Node) -> bool:
    """Whether a node communicates, or operates on a tensor of a class that may (a DTensor)."""
    return _sends(recorder, node) or any(_is_wrapper(recorder, used) for used in (node, *node.all_input_nodes))


def _sends(recorder: Recorder, node: torch.fx.Node) -> bool:
    """Whether a node communicates, or has to do with a graph that does."""
    return any(communicates(call.target) for call in calls_in([node], recorder.nodes.attributes.__getitem__))


def _is_wrapper(recorder: Recorder, node: torch.fx.Node) -> bool:
    value: Any = recorder.nodes.values.get(node)
    return isinstance(value, TensorValue) and is_wrapper(value.cls)


def _last_saving(recorder: Recorder, nodes: list[torch.fx.Node]) -> tuple[int, set[int]]:
    """The position of the last operation that saves a tensor for its backward pass, -1 if none does, and what it saves.

    Of what is saved these are the positions of its operands, and -1 for what it makes itself.
    """
    for position in range(len(nodes) - 1, -1, -1):
        operation: Operation | None = recorder.nodes.operations.get(nodes[position])
        saved = set() if operation is None else _saved(recorder, operation)
        if saved:
            return position, saved
    return -1, set()


def _saved(recorder: Recorder, operation: Operation) -> set[int]:
    """Which tensors an operation saves; all that it may be if that is not known."""
    if not any(getattr(value, "requires_grad", False) for value in operation.operands):
        return set()
    kept: list[torch.Tensor] = []
    own = torch.autograd.graph.saved_tensors_hooks(kept.append, lambda nothing: nothing)
    executor = recorder.fakes.executor
    waited = saved_hooks.suspend(False)
    try:
        with internals.disable_current_modes(), torch.enable_grad(), _making_no_numbers(recorder):
            with executor.mode:
                operands = [_stand_in(recorder, value) for value in operation.operands]
            with own:
                executor.run(operation.function, operation.args, operation.kwargs, operands, fill)
    except Exception:
        return {-1, *range(len(operation.operands))}
    finally:
        saved_hooks.suspend(waited)
    memories = {_memory(tensor) for tensor in kept}
    found = {at for at, given in enumerate(operands) if isinstance(given, torch.Tensor) and _memory(given) in memories}
    known = {_memory(given) for given in operands if isinstance(given, torch.Tensor)}
    return found | ({-1} if memories - known else set())


def _making_no_numbers(recorder: Recorder) -> AbstractContextManager[object]:
    """In which an operation may run again: the trace has the numbers that it makes, and expects no others."""
    shapes = recorder.shapes
    return shapes.env.ignore_fresh_unbacked_symbols() if shapes.begun else nullcontext()


def _stand_in(recorder: Recorder, value: Host) -> Any:
    """A fake tensor like an operand, which may be written to."""
    meta = getattr(value, "meta", None)
    if meta is not None:
        return recorder.fakes.memo(True).make(meta)
    fake = value.fake
    return fake.detach().requires_grad_(fake.requires_grad) if isinstance(fake, torch.Tensor) else fake


def _memory(tensor: torch.Tensor) -> object:
    """What tells tensors apart that share no memory; of a wrapper, its first part has it."""
    while hasattr(tensor, "__tensor_flatten__"):
        tensor = getattr(tensor, tensor.__tensor_flatten__()[0][0])
    return storage_of(tensor)


def _sends_in_order(
    recorder: Recorder, nodes: list[torch.fx.Node], saved: set[int], results: list[torch.fx.Node]
) -> bool:
    """Whether a backend that computes again what is needed for the backward pass sends all again, in the same order.

    It does if each collective is computed of the one before, and what the last node saves of the last of them.

    Args:
        nodes: the operations up to the last one that saves something.
        saved: what that saves (see `_last_saving`).
        results: those of the function, which are kept.
    """
    sending = [position for position, node in enumerate(nodes) if _sends(recorder, node)]
    for first, second in itertools.pairwise(sending):
        if not _computed_of(recorder, nodes, first)(nodes[second]):
            return False
    if not sending:
        return True
    operands = recorder.nodes.operations[nodes[-1]].operands
    needed: Iterable[torch.fx.Node] = {operands[at].node for at in saved if at >= 0}.difference(results)  # type: ignore[attr-defined]
    return any(map(_computed_of(recorder, nodes, sending[-1]), needed))


def _computed_of(recorder: Recorder, nodes: list[torch.fx.Node], first: int) -> Callable[[torch.fx.Node], bool]:
    """Tells which of the nodes depend on the first one, through memory too."""
    values, writes = recorder.nodes.values, recorder.effects.writes
    found, memory = {nodes[first]}, set[object]()
    for node in nodes[first + 1 :]:
        roots = [getattr(values.get(used), "root", None) for used in node.all_input_nodes]
        if not found.isdisjoint(node.all_input_nodes) or not memory.isdisjoint(roots):
            found.add(node)
            memory.update(writes.get(node, ()))
    return lambda node: node in found or getattr(values.get(node), "root", None) in memory
