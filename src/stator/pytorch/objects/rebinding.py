"""A tensor object that is to be another tensor from now on: `x.data = y`, `x.detach_()`, `x.set_(y)`.

What the object has been until then goes on in its place: as the graph input, as the operand of what was recorded, as
the name of the memory that its views lie in. That is handed over to a value of its own, which the program never sees,
and the object gets the node, the metadata and the memory of what it is now. Nothing of this is in the graph, so that
every backend takes it; of an object that existed before the trace, the residual program makes what it has become.

    def f(x, y):
        a = x * 2          # the input
        x.data = y
        return a, x + 1    # the input y, and once the graph has run: x.data = t0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.objects.resizing import Resizes
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Unsupported

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stator.pytorch.interfaces import Recorder
    from stator.space.interfaces import Writer

__all__ = ["Rebound", "become", "hand_over"]

T = TypeVar("T")


class Rebound:
    """What a tensor object has become, and how generated code makes the object that.

    Args:
        first: what it was when the trace began, if it existed then.
        leaf: the leaf of autograd's graph that the object is, if the trace makes one (see `leaves`).
    """

    __slots__ = ("data", "first", "is_leaf", "leaf", "method")

    def __init__(self, first: TensorValue | None, leaf: TensorValue | None = None) -> None:
        self.first = first
        self.leaf = leaf
        self.is_leaf = leaf is not None
        #: the tensor, without gradients, whose memory it has got; None where it has its own
        self.data: TensorValue | None = None
        #: how generated code gives it that memory
        self.method = "data"

    def made(self, writer: Writer) -> str:
        """The name of the leaf that the object is."""
        assert self.leaf is not None and self.leaf.source is not None
        return writer.source(self.leaf.source)

    def lines(self, writer: Writer, name: str, wanted: bool) -> list[str]:
        """What makes the object of this name what it has become; `wanted` is whether it requires gradients."""
        found = []
        if self.data is not None:
            data = writer.expr(self.data)
            set_ = f"{writer.const(_set)}({name}, {data})"
            found.append(set_ if self.method == "set_" else f"{name}.data = {data}")
        if self.first is not None and self.leaf is not None:
            found.append(f"{name}.requires_grad_({wanted})")
        elif self.first is not None and self.first.requires_grad and not wanted:
            found.append(f"{name}.detach_()")
        return found


@torch.no_grad()
def _set(tensor: torch.Tensor, data: torch.Tensor) -> None:
    """`tensor.set_(data)`; of a leaf that requires gradients it is called without them, in eager execution too."""
    tensor.set_(data)


def become(value: TensorValue, state: TensorValue) -> None:
    """The object is from now on what `state`, the result of an operation, is."""
    value._node, value._fake, value.meta, value.root = state.node, state._fake, state.meta, state.root
    value.operation, value.path = state.operation, state.path
    if state.operation is not None and value._fake is None:
        state.operation.made_values.append(value)  # type: ignore[attr-defined]
    elif value._fake is not None:
        value.recorder.tracked.note(value)


def hand_over(value: TensorValue, why: str) -> TensorValue:
    """What the object has been until now, as a value of its own; `why` says what is done to the object."""
    recorder = value.recorder
    inside = recorder.nodes.graph is not recorder.nodes.whole or internals.forward_level() >= 0
    if inside or value.root in recorder.tracked.hooked or value.root in recorder.trace.extension(Resizes).nodes:
        raise Unsupported(errors.UnsupportedMutation(why, "a tensor that other operations rely on"))
    before = TensorValue(recorder, value.cls, value.meta)
    before.source, before.host = value.source, value.host
    before.operation, before.path = value.operation, value.path
    before._node, before._fake = value.node, value._fake
    before.root = before if value.root is value else value.root
    _replace_everywhere(recorder, value, before)
    return before


def _replace_everywhere(recorder: Recorder, value: TensorValue, before: TensorValue) -> None:
    nodes, effects, tracked = recorder.nodes, recorder.effects, recorder.tracked
    if nodes.values.get(before.node) is value:
        nodes.values[before.node] = before
    _swap(nodes.inputs.values, value, before)
    for operation in nodes.operations.values():
        _swap(operation.operands, value, before)
        _swap(operation.made_values, value, before)  # type: ignore[arg-type]
        _reroot(operation.made_values, value, before)  # type: ignore[arg-type]
    _reroot(tracked.rebound, value, before)  # type: ignore[arg-type]
    for tensors in (tracked.existing, tracked.made):
        _swap(tensors, value, before)
    effects.written = _renamed(effects.written, value, before)
    effects.rewritten = _renamed(effects.rewritten, value, before)
    for node, counts in effects.writes.items():
        effects.writes[node] = _renamed(counts, value, before)
    tracked.own_gradients = _renamed(tracked.own_gradients, value, before)
    tracked.restructured = {k: before if v is value else v for k, v in tracked.restructured.items()}
    recorder.shapes.hand_over(value, before)


def _swap(values: list[Any], value: TensorValue, before: TensorValue) -> None:
    for i, item in enumerate(values):
        if item is value:
            values[i] = before


def _reroot(values: Iterable[TensorValue], value: TensorValue, before: TensorValue) -> None:
    for item in values:
        if item.root is value and item is not value:
            item.root = before


def _renamed(table: dict[Any, T], value: TensorValue, before: TensorValue) -> dict[Any, T]:
    return {before if key is value else key: item for key, item in table.items()} if value in table else table
