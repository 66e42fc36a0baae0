"""Operations that a backend would not take, or would take for something else: they break the graph, and say why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.fake.operator_facts import BY_NUMBER, UNCHECKED, of_library
from stator.pytorch.fake.outcome import SequenceResult, TensorResult
from stator.pytorch.objects.resizing import Resizes
from stator.pytorch.state.tensor_handlers import rely_on_handlers
from stator.pytorch.tensors.opaque import make_opaque
from stator.pytorch.tensors.reader import COMPRESSED
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.pytorch.fake.outcome import Outcome, Result
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.tensors.lowering import Call
    from stator.pytorch.traced import TracedTensor
    from stator.pytorch.types import Function

__all__ = ["is_sparse", "refuse_freed", "refuse_misplaced", "refuse_read", "refuse_rigid", "unchecked"]

#: what a sparse tensor consists of
_PARTS = frozenset({"values", "indices", "_values", "_indices", "col_indices", "row_indices"})
#: where the gradients of an operator are registered, or what it is made of is open to autograd
_TOLD = ("Autograd", "AutogradCPU", "AutogradCUDA", "CompositeImplicitAutograd")


def unchecked(call: Call) -> bool:
    """An operation that checks its operands' contents on real tensors only, before it runs any operator."""
    return getattr(call.function, "__name__", "") in UNCHECKED


def refuse_read(recorder: Recorder, call: Call) -> None:
    """An operation that must be given the numbers it reads, as a backend drops what it checks of others.

    Or one whose result has as many elements as there are in a sparse tensor: fake tensors do not know how many. Or one
    on distributed tensors, if the program has changed what handles it.
    """
    rely_on_handlers(recorder, call)
    name = getattr(call.function, "__name__", "")
    if name in _PARTS and any(map(is_sparse, tensors_among(call.operands))):
        raise _refusal(call, "the size of its result is the number of elements, which sparse fake tensors do not have")
    if name in BY_NUMBER and not recorder.keeps_order and tensors_among(call.operands[1:]):
        raise Unsupported(errors.DataDependentValue(describe_callable(call.function)))


def refuse_freed(recorder: Recorder, call: Call, outcome: Outcome) -> None:
    """No operation reads or writes where there is no memory any more."""
    resizes = recorder.trace.extension(Resizes)
    if resizes.short:
        resizes.refuse_short(call, outcome)


def refuse_rigid(call: Call) -> None:
    """An operation that AOTAutograd cannot functionalise, unless it may stand behind an operator of ours."""
    if not make_opaque(call):
        raise Unsupported(errors.UnsupportedMutation(describe_callable(call.function), "tensors of the program"))


def refuse_misplaced(call: Call, outcome: Outcome) -> None:
    """Break the graph before a call that only a backend which runs operations as they were recorded gets right."""
    tensors = tensors_among(call.operands)
    if any(map(_is_compressed, tensors)):
        raise _refusal(
            call, "its operand is compressed and sparse, or part of a sparse or nested tensor, which only `eager` takes"
        )
    if not (_hides_gradients(call.function) and torch.is_grad_enabled() and any(t.requires_grad for t in tensors)):
        return
    if outcome.written or _carries_gradients(outcome.result):
        raise _refusal(call, "no gradients are registered for it, and those of what it does inside would be lost")


def _refusal(call: Call, why: str) -> Unsupported:
    return Unsupported(errors.UnsupportedTensorOperation(describe_callable(call.function), why))


def is_sparse(value: TracedTensor) -> bool:
    """Whether a tensor is one of no storage of its own; jagged ones are wrappers."""
    return value.meta is None and getattr(value.fake, "layout", None) not in (torch.strided, torch.jagged)


def _is_compressed(value: TracedTensor) -> bool:
    if value.meta is None:
        return getattr(value.fake, "layout", None) in COMPRESSED
    if value.host is None or not value.meta.is_view:
        return False
    base = internals.base(value.host)
    return base.layout is not torch.strided or base.is_nested


def _hides_gradients(function: Function) -> bool:
    """Whether it is an operator of a library, of which autograd sees what it does inside, and AOTAutograd does not.

    In eager execution such an operator is no node of autograd's graph; the operations in its kernel are:

        library.define("scale(Tensor x) -> Tensor")
        library.impl("scale", lambda x: x * 2, "CPU")       # the gradient is that of `*`
    """
    if not of_library(function):
        return False
    name = function.name() if isinstance(function, internals.OpOverload) else internals.qualified_name(function)
    return not _is_told(name)


def _is_told(name: str) -> bool:
    return any(internals.has_kernel(name, key) for key in _TOLD)


def _carries_gradients(result: Result) -> bool:
    """Whether gradients may flow through the result: numbers are of types that they have."""
    if isinstance(result, SequenceResult):
        return any(map(_carries_gradients, result.items))
    if not isinstance(result, TensorResult):
        return result.computed
    return result.meta is None or result.meta.dtype.is_floating_point or result.meta.dtype.is_complex
