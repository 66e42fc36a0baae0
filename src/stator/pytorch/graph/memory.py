"""Whether the inputs that a graph writes lie apart in memory from its other inputs.

AOTAutograd performs writes at the end, and Inductor reorders what reads and writes. That is right for tensors which lie
apart. Those that lie upon each other AOTAutograd makes views of one base at the offsets of its example, which no guard
compares. So such a graph is run in the program's order instead, and every entry is guarded by what it was made for.

    def f(x, y): x.add_(1); return y * 2
    f(b[0:4], b[4:8])      # compiled
    f(b[0:4], b[1:5])      # run in order, and so is
    f(b[0:4], b[2:6])
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import torch

from stator import errors
from stator.guards.guard import Apart, Predicate
from stator.guards.source import ConstSource
from stator.pytorch import internals
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.graph.refusals import is_sparse
from stator.pytorch.objects.resizing import Resizes
from stator.pytorch.state import saved_hooks
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.identity.aliasing import KnownBytes
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import TracedTensor
    from stator.pytorch.types import Args, Function, GraphValue

__all__ = ["MemoryRule", "memory_guard", "must_run_in_order", "separate_from_bytes"]

_Base: Any = internals.TensorBase


def must_run_in_order(recorder: Recorder, inputs: list[GraphValue]) -> bool:
    """Whether AOTAutograd cannot take the graph.

    It writes no inputs beside tensors of classes of the program's own, or sparse ones, which have no storage, or views
    that it takes for their bases' memory and that have another. Of a sparse tensor it takes the gradient for a dense
    one. Where the default dtype is changed, it makes `torch.ones(2)` of the dtype that is the default when its graph
    runs. It saves other tensors than the program, which hooks see.
    """
    return (
        recorder.tracked.in_order
        or _is_saved_for_hooks(recorder, inputs)
        or any(node.target is internals.set_default_dtype for node in recorder.effects.state_nodes)
        or _saves_other_data(recorder, inputs)
        or any(value.requires_grad and is_sparse(value) for value in _tensors(recorder, inputs))
        or (bool(recorder.effects.written) and any(map(_hinders_writes, tensors_among(inputs))))
    )


def _tensors(recorder: Recorder, inputs: list[GraphValue]) -> list[TracedTensor]:
    """The tensors of the graph."""
    return [*tensors_among(inputs), *_made(recorder)]


def _made(recorder: Recorder) -> list[TracedTensor]:
    return [value for operation in recorder.nodes.operations.values() for value in operation.made_values]


def _is_saved_for_hooks(recorder: Recorder, inputs: list[GraphValue]) -> bool:
    recorded = _tensors(recorder, inputs) if torch.is_grad_enabled() else _made(recorder)
    return any(tensor.requires_grad for tensor in recorded) and saved_hooks.see_other_tensors(recorder.trace)


def _hinders_writes(tensor: TracedTensor) -> bool:
    return tensor.cls not in PLAIN_CLASSES or is_sparse(tensor) or _has_left_its_base(tensor.host)


def _has_left_its_base(tensor: torch.Tensor | None) -> bool:
    """Whether it is a view that other data has been assigned to since: `row = table[0]; row.data = torch.ones(3)`."""
    base = None if tensor is None else internals.base(tensor)
    return base is not None and not base.is_nested and storage_of(base) != storage_of(tensor)


def _saves_other_data(recorder: Recorder, inputs: list[GraphValue]) -> bool:
    """Whether a tensor that gets other data when the graph has run, or none, may be saved for its backward pass.

    AOTAutograd saves inputs themselves, and finds the new data there: `y = F.linear(x, w); w.data = w * 0.5`. Eager
    saves what each operation saves, here a view of the old data.
    """
    rebound = [each.first for each in recorder.tracked.rebound.values() if each.first and each.data]
    changed = [value.node for value in rebound if value in inputs]
    resizes = recorder.trace.extension(Resizes)
    changed += [value.node for value in resizes.last if value in resizes.short]
    seen, waiting, operations = set(changed), changed, recorder.nodes.operations
    while waiting:
        for user in waiting.pop().users.keys() - seen:
            seen.add(user)
            waiting.append(user)
            if user in operations and any(value.requires_grad for value in operations[user].made_values):
                return True
    return False


def memory_guard(recorder: Recorder, inputs: list[GraphValue]) -> Apart | None:
    """How the inputs of the graph lie in memory, or None where that doesn't matter; its `fn` is a MemoryRule."""
    existing, changed = set(recorder.tracked.existing), recorder.effects.written
    tensors = [value for value in inputs if value in existing]
    written = [value for value in tensors if value in changed]
    others = [value for value in tensors if value not in changed]
    if not written or len(tensors) < 2:
        return None
    hosts = [value.host for value in (*written, *others)]
    rule = MemoryRule.of(hosts, len(written))
    how = "apart from" if rule.apart else "upon"
    text = f"what is written of {', '.join(value.source.expr() for value in written)} lies {how} other inputs"
    return Apart(tuple([value.source for value in (*written, *others)]), rule, text)


def lies_apart(recorder: Recorder, value: TracedTensor, written: list[TracedTensor]) -> bool:
    """Whether an existing tensor lies apart from others that the program has written; guarded, if it does.

    What is known of its contents is what they were when the call began: `x.add_(1)` may have changed `self.steps`.
    """
    tensors = [*written, value]
    rule = MemoryRule.of([each.host for each in tensors], len(written))
    if not rule.apart:
        return False
    sources = tuple([each.source or ConstSource(each.host, "a tensor") for each in tensors])
    *names, own = [source.expr() for source in sources]
    recorder.trace.guard(Apart(sources, rule, f"what is written of {', '.join(names)} lies apart from {own}"))
    return True


def separate_from_bytes(recorder: Recorder, inputs: list[GraphValue]) -> None:
    """No input of the graph lies in an array whose bytes the trace knows: what one writes, the other would not see."""
    for array in recorder.trace.extension(KnownBytes).values:
        for value in set(recorder.tracked.existing).intersection(inputs):
            if not _apart_from_bytes(array.host, value.host):
                raise Unsupported(errors.UnsupportedMutation("a graph", "a tensor in the memory of a bytearray"))
            sources = tuple([each.source or ConstSource(each.host, "a tensor") for each in (array, value)])
            recorder.extra_guards.append(Predicate(sources, _apart_from_bytes, "no tensor lies in the bytearray"))


def _apart_from_bytes(array: bytearray, tensor: torch.Tensor) -> bool:
    extent = _extent(tensor)
    if extent is None or not array:
        return True
    begin = ctypes.addressof(ctypes.c_char.from_buffer(array))
    return extent[1] <= begin or begin + len(array) <= extent[0]


class MemoryRule:
    """Whether the first `written` tensors lie apart from the others, or do not, as `apart` says.

    Of tensors in the storage of a written one none may lie upon another, as AOTAutograd puts all of that storage into
    one base if any two do. The core has the same rule (`_core/memory.cpp`).
    """

    __slots__ = ("apart", "itemsizes", "written")

    def __init__(self, written: int, itemsizes: tuple[int, ...], apart: bool) -> None:
        self.written = written
        self.itemsizes = itemsizes
        self.apart = apart

    @classmethod
    def of(cls, tensors: list[torch.Tensor], written: int) -> MemoryRule:
        """The rule that holds for these tensors."""
        itemsizes = tuple([tensor.dtype.itemsize for tensor in tensors])
        apart = cls(written, itemsizes, True)
        return apart if apart(*tensors) else cls(written, itemsizes, False)

    def __call__(self, *tensors: object) -> bool:
        with internals.DisableTorchFunctionSubclass():
            return self.all_apart(tensors) == self.apart

    def all_apart(self, tensors: tuple[torch.Tensor, ...]) -> bool:
        """Whether no stretches of memory that lie upon each other lie in a written storage."""
        written = {storage_of(tensor) for tensor in tensors[: self.written]}
        extents = sorted(filter(None, map(_extent, tensors)))
        reach, harmful = 0, False  # how far the stretch before goes, and whether it has a part in a written storage
        for begin, end, storage in extents:
            if begin >= reach:
                harmful = storage in written
            elif harmful or storage in written:
                return False
            reach = max(reach, end)
        return True

    def __reduce__(self) -> tuple[Function, Args]:
        return MemoryRule, (self.written, self.itemsizes, self.apart)


def _extent(tensor: torch.Tensor) -> tuple[int, int, int] | None:
    """From which address to which the elements of a tensor lie, and in which storage; None for one without memory."""
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.numel() == 0:
        return None
    try:
        storage = tensor.untyped_storage()
        memory = storage.data_ptr()
    except (NotImplementedError, RuntimeError):
        return None
    if not memory:
        return None
    span = 1 + sum((n - 1) * s for n, s in zip(_Base.size(tensor), _Base.stride(tensor), strict=True))
    begin = memory + _Base.storage_offset(tensor) * tensor.dtype.itemsize
    return begin, begin + span * tensor.dtype.itemsize, internals.storage_address(storage)
