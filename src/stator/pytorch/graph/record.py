"""Recording one call: what it returns and does is found out, and its node added to the graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from stator.pytorch.fake.failure import Failure, describe_callable
from stator.pytorch.fake.outcome import Outcome, outcome_of, versions_of
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.graph.node_meta import NodeMeta, call_chain
from stator.pytorch.graph.operation import Operation
from stator.pytorch.graph.refusals import refuse_freed, refuse_misplaced, refuse_read, refuse_rigid, unchecked
from stator.pytorch.shapes.ordinary import OrdinarySizes
from stator.pytorch.state.generators import draw, drawn_from
from stator.pytorch.tensors.failures import real_warnings
from stator.pytorch.tensors.latent import rely_on_all, rely_on_autograd, rely_on_place_in_storage, told_by_guard
from stator.pytorch.tensors.lowering import Call, fill
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.value import Unsupported, Value
from stator.space.warning_trap import left_to_run_time

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder

__all__ = ["record_call"]


def record_call(recorder: Recorder, call: Call) -> Value:
    """Record a call, and return the traced value of its result."""
    refuse_read(recorder, call)
    space = recorder.trace.space
    operation = Operation(recorder, call)
    try:
        outcome = _outcome(recorder, call, operation)
    except (Failure, Unsupported):
        if not _is_ordinary(recorder, call):
            raise
        return record_call(recorder, call)
    if outcome.random:
        generator = drawn_from(recorder.trace, call)
        if generator is not None:
            return draw(space, call, outcome, generator)
    if outcome.warned:
        outcome.warned = real_warnings(call, outcome.warned)
        left_to_run_time(space, outcome.warned, describe_callable(call.function))
    if outcome.rigid and not recorder.keeps_order:
        refuse_rigid(call)
    outcome.effectful |= call.acts
    if outcome.traced:
        _emit(recorder, call, operation, outcome)
    elif not told_by_guard(call.function):
        rely_on_all(call.operands)
    result = outcome.result.build(space, operation, ())
    if outcome.makes_leaf and not recorder.keeps_order:
        recorder.slots.keep_leaf(space, result, describe_callable(call.function))
    return result


def _is_ordinary(recorder: Recorder, call: Call) -> bool:
    """Whether the operation has failed as it must know a size in a tensor that is assumed to be neither 0 nor 1 now."""
    undecided: Any = recorder.fakes.executor.undecided if recorder.shapes.begun else None
    if undecided is None:
        return False
    return recorder.trace.extension(OrdinarySizes).neither_0_nor_1(undecided.cond, call.operands)


def _outcome(recorder: Recorder, call: Call, operation: Operation) -> Outcome:
    """What the operation returns and does: remembered, or found by running it on fake tensors."""
    if call.key is not None and recorder.trace.config.memo_metadata:
        key = (call.key, recorder.state.key)
        memo = recorder.fakes.memo(any(meta.symbolic for meta in call.metas))
        found = memo.outcome(call.function, call.args, call.kwargs, key, call.metas, fill)
        if found is not None and not (found.written and _share_memory(call.operands)):
            if found.traced:
                recorder.state.pending.append(operation)
            return found
    return _run(recorder, call, operation)


def _run(recorder: Recorder, call: Call, operation: Operation) -> Outcome:
    if call.operands:  # what is made of constants does not see what was written before
        recorder.fakes.replay()
    fakes = [operand.fake for operand in call.operands]  # type: ignore[attr-defined]
    before = versions_of(fakes)
    executor = recorder.fakes.executor
    run = executor.run_once if call.reads_history else executor.run
    try:
        observed = run(call.function, call.args, call.kwargs, fakes, fill)
    except (Failure, Unsupported) as e:
        recorder.shapes.note_failure(e, executor.undecided)
        raise
    operation.bindings = recorder.shapes.bindings(observed.result, call.function)
    outcome = outcome_of(observed, fakes, before, describe_callable(call.function), recorder.fakes.symbolic)
    operation.made_already(observed.result)
    recorder.tracked.note_result(observed.result)
    recorder.tracked.in_order |= observed.resized
    if outcome.written:
        recorder.tracked.refresh(observed.written)
        written = tensors_among(call.operands[index] for index in outcome.written)
        recorder.tracked.note_wrapper(written, observed.written)
    return outcome


def _share_memory(operands: list[Value]) -> bool:
    """Whether two of the operands are tensors in the same memory."""
    roots = [tensor.root for tensor in tensors_among(operands)]
    memories = {root if root.host is None else storage_of(root.host) for root in roots}
    return len(memories) < len(roots)


def _emit(recorder: Recorder, call: Call, operation: Operation, outcome: Outcome) -> None:
    """Add the node of an operation to the graph, and note what it does."""
    effects, trace = recorder.effects, recorder.trace
    if not recorder.keeps_order:
        refuse_misplaced(call, outcome)
    written = [call.operands[index].root for index in outcome.written]  # type: ignore[attr-defined]
    refuse_freed(recorder, call, outcome)
    recorder.tracked.refuse_hooked(written)
    recorder.tracked.refuse_rebound(written)
    args, kwargs = call.node_args()
    node = operation.node = recorder.nodes.graph.create_node(call.kind, call.target, args, kwargs)
    recorder.nodes.operations[node] = operation
    operation.result = outcome.result
    node.meta = NodeMeta(operation.example, call_chain(trace.frame))
    if recorder.nodes.annotations:
        node.meta["custom"] = dict(recorder.nodes.annotations[-1])
    if operation.bindings:
        node.meta["unbacked_bindings"] = operation.bindings
    recorder.state.used = True
    operation.effectful = outcome.effectful
    if not recorder.keeps_order:
        rely_on_place_in_storage(call)
    if written and torch.is_grad_enabled():
        with_grad = any(tensor.requires_grad for tensor in tensors_among(call.operands))
        for root in written:
            if with_grad or root.requires_grad:
                rely_on_autograd(root)
    before = effects.random or effects.acts
    effects.note(node, operation, outcome, written)
    if unchecked(call):
        effects.fallible[node] = operation
    if (before or effects.written) and not effects.exposed:
        effects.exposed = _is_exposed(recorder)
    if outcome.effectful:
        trace.mutation_count += 1
        if not (outcome.random or outcome.written or _only_raises(call)):
            effects.acting.add(node)
            if not call.only_shows:
                effects.once.add(node)


def _only_raises(call: Call) -> bool:
    """Whether all that the operation does besides computing is to raise."""
    return call.only_raises or "_assert" in getattr(call.function, "__name__", "")


def _is_exposed(recorder: Recorder) -> bool:
    """Whether an exception here finds handlers of the program, or effects that are still to be performed."""
    frame = recorder.trace.frame
    while frame is not None:
        if frame.last().handler is not None:
            return True
        frame = frame.parent
    return bool(recorder.trace.effects.count or recorder.state.changed or recorder.tracked.hooked)
