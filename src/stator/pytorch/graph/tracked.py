"""The tensors of a trace whose state is followed: what was there before, and what writes to shared memory change."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.guards.base import Guard
from stator.guards.guard import Predicate, TensorMatch
from stator.pytorch.autograd.engine_state import EngineState
from stator.pytorch.fake.metadata import hint_of, same_numbers, symbolic_dims
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.nesting import tensors_in
from stator.pytorch.shapes import dynamism
from stator.pytorch.subclasses.wrappers import has_open_rows, open_wrapper, refuse_hidden, sharing_guard
from stator.pytorch.tensors.classes import is_wrapper
from stator.pytorch.tensors.reader import tensor_spec
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stator.pytorch.fake.metadata import TensorMeta
    from stator.pytorch.graph.propagation import FakePropagation
    from stator.pytorch.traced import Operation, Rebound, TracedTensor
    from stator.space.interfaces import Trace

__all__ = ["TrackedTensors"]


class TrackedTensors:
    """The tensors of one trace."""

    def __init__(self, trace: Trace, fakes: FakePropagation) -> None:
        self.trace = trace
        self.fakes = fakes
        self.existing: list[TracedTensor] = []
        #: those made by the trace that have fake tensors
        self.made: list[TracedTensor] = []
        #: existing tensors whose metadata the graph changes, by their storages
        self.restructured: dict[int, TracedTensor] = {}
        #: the roots of tensors that get hooks when the graph has run
        self.hooked: set[TracedTensor] = set()
        #: what the trace has to do with the autograd engine
        self.engine = EngineState()
        #: results of autograd Functions that share memory with an argument
        self.own_gradients: dict[TracedTensor, Operation] = {}
        #: tensor objects that have become other tensors than they were, and how (see `objects.rebinding`)
        self.rebound: dict[TracedTensor, Rebound] = {}
        #: leaves that are made with the other inputs of the graph (see `objects.leaves`)
        self.new_leaves: set[TracedTensor] = set()
        #: what an existing tensor was, that is an input of the graph as a leaf as well, by that leaf
        self.lent: dict[TracedTensor, TracedTensor] = {}
        #: by the tensors that came first: that a storage was copied as if one tensor lay in it, the step, and which one
        self.copied: dict[TracedTensor, tuple[int, TracedTensor]] = {}
        #: copies of what the program may have under another name, unknown to it (see `objects.hidden_copies`)
        self.hidden_copies: set[TracedTensor] = set()
        #: why gradients of a leaf come from several places of the graph: "its data was exchanged", or nothing
        self.scattered = ""
        #: whether the graph must be run in the order of the program, by no backend that works otherwise
        self.in_order = False
        #: whether jagged tensors have been met
        self.jagged = False

    def adopt(self, value: TracedTensor) -> None:
        """An existing tensor has been met: guard and describe it."""
        if self.restructured and storage_of(value.host) in self.restructured:
            raise _shares_memory()
        dims = dynamism.dims(self.trace, value)
        seen = value.host
        if dims:
            seen = value._fake = self.fakes.shapes.fakify(value, dims)
        if is_wrapper(value.cls):
            open_wrapper(self.trace, value, seen)
        self.note_result(seen)
        self.existing.append(value)
        if value.source is not None:
            # of symbols the ShapeEnv knows what the trace depends on
            self.trace.guard(TensorMatch(value.source, tensor_spec(value.host, *symbolic_dims(seen))))
        value.meta = self.fakes.describe(seen)

    def note_result(self, result: object) -> None:
        """An operation has given this, or it is there: AOTAutograd knows the sizes of rows as symbols only."""
        nested = [tensor for tensor in tensors_in(result) if tensor.is_nested]
        self.jagged |= bool(nested)
        self.in_order |= not all(map(has_open_rows, nested))

    def note(self, value: TracedTensor) -> None:
        """A new tensor has got its fake tensor: writes to the storage it shares must be seen in it."""
        self.made.append(value)

    def refresh(self, written: set[int]) -> None:
        """Tensors that share a written storage may have other metadata now."""
        for value in [*self.existing, *self.made]:
            if value._fake is None or storage_of(value._fake) not in written:
                continue
            if value.host is not None and _geometry(value._fake) != _geometry(value.host):
                self.in_order = True  # AOTAutograd gives it the strides and the storage offset of a tensor of its own
            if value.meta is None:
                continue
            meta = self.fakes.describe(value._fake)
            self.in_order |= meta is not value.meta and _has_grown(value._fake, value.meta)
            if meta is not value.meta and value.host is not None:
                self.restructure(value)
            value.meta = meta

    def restructure(self, value: TracedTensor) -> None:
        """The metadata of an existing tensor, or its storage, has changed: that of others in there may have, unseen."""
        storage = storage_of(value.host)
        self.restructured.setdefault(storage, value)
        if any(t is not value and storage_of(t.host) == storage for t in self.existing):
            raise _shares_memory()

    def refuse_hooked(self, written: Iterable[TracedTensor]) -> None:
        """A tensor that is written gets another place in autograd's graph: its hooks belong to the one before."""
        hooked = self.hooked | {value.root for value in self.engine.retaining}
        if hooked and any(root in hooked for root in written):
            raise Unsupported(errors.UnsupportedMutation("an in-place operation", "a tensor with a hook"))

    def note_wrapper(self, operands: Sequence[TracedTensor], written: set[int]) -> None:
        """Of these operands, which are written, some may be wrappers, and have written what they hold."""
        if not any(is_wrapper(operand.cls) for operand in operands):
            return
        self.in_order = True
        refuse_hidden(self.trace, self.existing, operands, written)

    def refuse_rebound(self, written: Iterable[TracedTensor]) -> None:
        """An object that lies in the memory of another counts writes of its own, which no backend does for it."""
        roots = {value.root for value, how in self.rebound.items() if how.data is not None} if self.rebound else ()
        if any(root.host is not None and root in roots for root in written):
            raise Unsupported(errors.UnsupportedMutation("an in-place operation", "a tensor that got another's data"))

    def _may_be_offsets(self, value: TracedTensor) -> bool:
        """Whether a jagged tensor may be made, or has been, with the tensor as its offsets or lengths."""
        meta = value.meta if self.jagged else None
        return meta is not None and len(meta.shape) == 1 and not meta.dtype.is_floating_point

    def guards(self) -> list[Guard]:
        """Gradients are accumulated and no more; what wrappers have in common they have still; and no other tensor lies
        in the storage of one whose metadata the program changes: its own might change too.
        """
        found = self.engine.guards()
        for value in self.restructured.values():
            others = [other.source for other in self.existing if other is not value and other.source is not None]
            if others and value.source is not None:
                text = f"{value.source.expr()} shares no storage with other tensors"
                found.append(Predicate((value.source, *others), _apart, text))
        sharing = sharing_guard(
            [value for value in self.existing if is_wrapper(value.cls) or self._may_be_offsets(value)]
        )
        return found if sharing is None else [*found, sharing]


def _apart(tensor: torch.Tensor, *others: torch.Tensor) -> bool:
    storage = storage_of(tensor)
    return all(storage_of(other) != storage for other in others)


def _shares_memory() -> Unsupported:
    return Unsupported(errors.UnsupportedMutation("an in-place operation", "a tensor that shares memory"))


def _has_grown(tensor: torch.Tensor, before: TensorMeta) -> bool:
    """Whether a tensor has more elements than before (`resize_`), which AOTAutograd takes for those of another."""
    shapes = [tuple(map(hint_of, shape)) for shape in (tensor.shape, before.shape)]
    if any(None in shape for shape in shapes):
        return not all(map(same_numbers, tensor.shape, before.shape)) or tensor.dim() != len(before.shape)
    return math.prod(shapes[0]) > math.prod(shapes[1])


def _geometry(tensor: torch.Tensor) -> tuple[object, ...] | None:
    """Which elements of its storage a tensor consists of, in this call."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        return None
    numbers = (tensor.dim(), *tensor.shape, *tensor.stride(), tensor.storage_offset())
    return tuple([hint_of(number) for number in numbers])
