"""What a graph does that nobody can take back: where there is any of it, Python cannot execute the frame once more.

A trace that assumes something (see `tensors.checks`) asks here first, and tells the user what is in the way:

    if not torch.isfinite(x).all():     # a branch depends on the value of a tensor, and is not assumed:
        raise ValueError                # Tensor.add_ at train.py:3 writes a tensor whose history autograd keeps,
    self.total.add_(self.weight * x)    # which cannot be undone
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.fake.failure import describe_callable
from stator.pytorch.fake.storage import storage_of
from stator.pytorch.graph.node_meta import place_of
from stator.pytorch.objects.resizing import Resizes
from stator.pytorch.tensors.classes import is_plain_class

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.traced import Operation, TracedTensor

__all__ = [
    "Obstacle",
    "costly",
    "irrevocable",
    "irrevocable_afterwards",
    "is_put_back",
    "is_reshaped",
    "within_limit",
]


@dataclasses.dataclass(frozen=True)
class Obstacle:
    """What nobody can take back, or take back at a fair price.

    Attributes:
        sentence: what it is, and why.
        instead: what does the same and writes nothing, as the program may write it: "`out = out.index_add(...)`".
    """

    sentence: str
    instead: str = ""

    def __str__(self) -> str:
        return self.sentence


def irrevocable(recorder: Recorder) -> Obstacle | None:
    """What of the graph nobody can take back when it has failed."""
    operations = recorder.nodes.operations
    acting = next((operations[node] for node in operations if node in recorder.effects.acting), None)
    if acting is not None:
        return Obstacle(f"{_named(acting)} cannot be undone")
    if recorder.trace.extension(Resizes):
        return Obstacle("to give a storage another size cannot be undone")
    return _first_write(recorder, _unlike_a_copy)


def irrevocable_afterwards(recorder: Recorder) -> Obstacle | None:
    """The same of a graph that has run to its end."""
    return irrevocable(recorder) or _first_write(recorder, _more_than_elements)


def costly(recorder: Recorder) -> Obstacle | None:
    """That what the graph writes is not worth a copy before each run."""
    if within_limit(recorder):
        return None
    limit = recorder.trace.config.undo_limit
    return Obstacle(
        f"what the graph writes, {_bytes(recorder):,} bytes, is more than is copied at each call (undo_limit={limit})"
    )


def within_limit(recorder: Recorder) -> bool:
    """Whether what the graph writes is worth a copy before each run."""
    return _bytes(recorder) <= recorder.trace.config.undo_limit


def is_put_back(value: TracedTensor) -> bool:
    """Whether a copy of an existing tensor tells all that is to be put back when a graph has failed."""
    return not _unlike_a_copy(value)


def is_reshaped(value: TracedTensor) -> bool:
    """Whether the graph gives an existing tensor other sizes, strides or another place in its memory."""
    meta, host = value.meta, value.host
    if meta is None or meta.symbolic or storage_of(host) not in value.recorder.tracked.restructured:
        return False
    return (meta.shape, meta.stride, meta.offset) != (host.shape, host.stride(), host.storage_offset())


def _unlike_a_copy(value: TracedTensor) -> str:
    """What an existing tensor is that is written, if its copy would not tell all of it."""
    host = value.host
    if not is_plain_class(value.cls):
        return f"a {value.cls.__qualname__}"
    if host.layout is not torch.strided or host.is_nested or host.is_quantized:
        return "a sparse, nested or quantised tensor"
    return "" if host.is_leaf or not internals.is_view(host) else "a view that autograd has recorded"


def _more_than_elements(value: TracedTensor) -> str:
    """What an existing tensor is of which a graph changes more than its elements."""
    host = value.host
    if not host.is_leaf or value.requires_grad != host.requires_grad:  # a parameter is a leaf before and after
        return "a tensor whose history autograd keeps"
    if host.is_inference():
        return "a tensor made in inference mode"
    return "a tensor's shape" if is_reshaped(value) else ""


def _first_write(recorder: Recorder, obstacle: Callable[[TracedTensor], str]) -> Obstacle | None:
    """That a write cannot be undone, for the first tensor of which `obstacle` says what it is."""
    effects = recorder.effects
    for value in effects.written:
        kind = obstacle(value)
        if kind:
            writing = effects.rewritten[value]
            sentence = f"{_named(writing)} writes {kind}, which cannot be undone"
            return Obstacle(sentence, _out_of_place(describe_callable(writing.called)))
    return None


def _out_of_place(name: str) -> str:
    """What does the same as a method that writes in place: of `Tensor.add_`, `out = out.add(...)`; "" if unknown."""
    plain = name.removeprefix("Tensor.")[:-1]
    is_method = name == f"Tensor.{plain}_" and not plain.endswith("_") and hasattr(torch.Tensor, plain)
    return f"`out = out.{plain}(...)`" if is_method else ""


def _named(operation: Operation) -> str:
    """An operation, and where the program has it."""
    return f"{describe_callable(operation.called)} at {os.path.basename(place_of(operation.node))}"


def _bytes(recorder: Recorder) -> int:
    return sum(value.host.numel() * value.host.element_size() for value in recorder.effects.written)
