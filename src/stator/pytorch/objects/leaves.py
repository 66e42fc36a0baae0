"""New leaves of autograd's graph: `nn.Parameter(t)`, `t.requires_grad_()`, and leaves that get other memory.

`backward()` accumulates gradients in an object, and what a backend gives is a result. So the object is made before the
graph runs, empty, and is an input of it, to which gradients flow; the graph computes what is to be in it.

    def f(x):
        w = nn.Parameter(x * 2)    # leaf = empty(...)            made with the other inputs
        return w, w.sum()          # with_data(leaf, x * 2)       in the graph
                                   # leaf.data = t0               when the graph has run
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from stator import errors
from stator.guards.source import CallSource, ConstSource, Source
from stator.pytorch import internals
from stator.pytorch.fake.metadata import hint_of, is_symbol
from stator.pytorch.objects.rebinding import Rebound, become, hand_over
from stator.pytorch.shapes.computed import computed_sizes
from stator.pytorch.tensors.latent import is_known_leaf
from stator.pytorch.tensors.recording import record_function
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.value import Unsupported, Value

if TYPE_CHECKING:
    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Nested
    from stator.space.space import Space

__all__ = ["begin_leaf", "begin_leaf_of", "data_of", "keep_leaf", "lend", "move_leaf", "with_data"]


class _WithData(torch.autograd.Function):
    """The second tensor, as which the first is used: gradients go to that."""

    @staticmethod
    def forward(ctx: Nested, leaf: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
        return data.detach()

    @staticmethod
    def backward(ctx: Nested, grad: torch.Tensor) -> tuple[torch.Tensor, None]:
        return grad, None


def with_data(leaf: torch.Tensor, data: torch.Tensor) -> torch.Tensor:
    """A tensor in the memory of `data` that autograd takes for `leaf`."""
    with torch.enable_grad():
        return _WithData.apply(leaf, data)


class LeafMaker:
    """Makes an empty leaf: called with the other inputs of a graph, once for each call of it.

    Args:
        sizes: the sizes and the strides, or what computes them from other inputs.
    """

    def __init__(self, cls: type, data: TensorValue, requires_grad: bool, sizes: Sizes) -> None:
        self.cls = cls
        self.sizes = sizes
        self.options = _options(data)
        self.requires_grad = requires_grad

    def __call__(self, *inputs: Any) -> torch.Tensor:
        sizes = self.sizes(*inputs) if callable(self.sizes) else self.sizes
        dims = len(sizes) // 2
        with torch.inference_mode(False), torch.no_grad():
            made = torch.empty_strided(sizes[:dims], sizes[dims:], **self.options)
        return internals.make_subclass(self.cls, made, self.requires_grad)


#: the sizes and the strides of a tensor, or what computes them
Sizes: TypeAlias = Callable[..., tuple[int, ...]] | tuple[int, ...]


def _input(recorder: Recorder, cls: type, data: TensorValue, wanted: bool) -> TensorValue:
    """The leaf as an input of the graph, in which its elements are not looked at."""
    leaf, hints, computed = _example(recorder, cls, data, wanted)
    recorder.tracked.new_leaves.add(leaf)
    if computed is None:
        leaf.source = CallSource(LeafMaker(cls, data, wanted, hints), ConstSource(None, "a new leaf"), "make")
        return leaf
    sizes, sources = computed
    leaf.source = CallSource(LeafMaker(cls, data, wanted, sizes), sources[0], "leaf like", *sources[1:])
    return leaf


def _example(
    recorder: Recorder, cls: type, data: TensorValue, wanted: bool
) -> tuple[TensorValue, tuple[int, ...], tuple[Sizes, tuple[Source, ...]] | None]:
    """A leaf of the sizes of `data`, for the backend to see; with its sizes and strides, and what computes them."""
    numbers = (*data.shape, *(data.fake.stride() if data.meta is None else data.meta.stride))
    hints = tuple([hint_of(number) for number in numbers])
    if None in hints:
        raise Unsupported(errors.NewLeaf("making a tensor that requires gradients, of sizes that are computed,"))
    computed = computed_sizes(recorder, numbers) if any(map(is_symbol, numbers)) else None
    if computed is None:
        numbers = tuple(map(int, numbers))  # those that nothing computes again are fixed: the half of a size
    leaf = TensorValue(recorder, cls, None)
    leaf.host = LeafMaker(torch.Tensor, data, wanted, hints)(None)
    with recorder.fakes.executor.mode, torch.no_grad():
        fake = torch.empty_strided(numbers[: len(data.shape)], numbers[len(data.shape) :], **_options(data))
    leaf._fake = fake.requires_grad_(wanted)
    leaf.meta = recorder.fakes.describe(leaf._fake)
    if computed is not None:
        recorder.shapes.made_like(leaf)
    return leaf, hints, computed


def _same(tensor: torch.Tensor) -> torch.Tensor:
    return tensor


def lend(space: Space, value: TensorValue, before: TensorValue, data: TensorValue) -> TensorValue:
    """An existing tensor, which requires no gradients yet, as an input that does (see `compiled_graph.lending`)."""
    recorder = value.recorder
    _refuse_inside(recorder)
    leaf, *_ = _example(recorder, value.cls, data, True)
    assert value.source is not None
    leaf.source = CallSource(_same, value.source, "leaf")
    recorder.tracked.lent[leaf] = before
    move_leaf(space, value, leaf, data)
    return leaf


def _refuse_inside(recorder: Recorder) -> None:
    inside = recorder.nodes.graph is not recorder.nodes.whole or internals.forward_level() >= 0
    if inside or torch.is_inference_mode_enabled():
        raise Unsupported(errors.NewLeaf("making a tensor in inference mode, or inside of another operation,"))


def _options(data: TensorValue) -> dict[str, Any]:
    return {"dtype": data.dtype, "device": data.device}


def data_of(space: Space, value: TensorValue) -> TensorValue:
    """The same memory outside of autograd, with a count of writes of its own."""
    return record_function(space, getattr, value, "data")


def begin_leaf_of(space: Space, value: TensorValue) -> None:
    """A new tensor, in its own memory, becomes a leaf that gradients are accumulated in."""
    data = data_of(space, value)
    hand_over(value, "making a leaf of it")
    begin_leaf(space, value, data, True)


def keep_leaf(space: Space, made: Value, name: str) -> None:
    """What an operation of this name has made is a leaf: a new tensor."""
    if not isinstance(made, TensorValue) or internals.are_transforms_active():
        raise Unsupported(errors.NewLeaf(name))
    begin_leaf_of(space, made)


def begin_leaf(space: Space, value: TensorValue, data: TensorValue, wanted: bool) -> None:
    """The object, which is in no graph of autograd, becomes a leaf in the memory of `data`, which has no gradients."""
    recorder = value.recorder
    _refuse_inside(recorder)
    rebound: Any = recorder.tracked.rebound.get(value)
    if rebound is not None and rebound.leaf is not None:
        rebound.is_leaf = True
        if not _alike(rebound.leaf, data, wanted):
            _refuse_used(recorder, rebound.leaf)
            rebound.leaf = _input(recorder, value.cls, data, wanted)
        recorder.tracked.scattered = "the data of a leaf was exchanged"
    else:
        rebound = recorder.tracked.rebound[value] = Rebound(None, _input(recorder, value.cls, data, wanted))
    rebound.data = data
    if wanted:
        move_leaf(space, value, rebound.leaf, data)
    else:
        become(value, data)


def _alike(leaf: TensorValue, data: TensorValue, wanted: bool) -> bool:
    """Whether a leaf can have this data as well."""
    same = (leaf.dtype, leaf.device, leaf.requires_grad) == (data.dtype, data.device, wanted)
    return same and bool(leaf.shape == data.shape)


def _refuse_used(recorder: Recorder, leaf: TensorValue) -> None:
    """A leaf of other sizes or another type takes no gradients from what the leaf was before."""
    for state in leaf.node.users:
        for user in state.users:
            operation = recorder.nodes.operations.get(user)
            if operation is not None and any(made.requires_grad for made in operation.made_values):
                raise Unsupported(errors.NewLeaf("giving other sizes to a leaf that gradients were recorded for"))


def move_leaf(space: Space, value: TensorValue, origin: TensorValue, data: TensorValue) -> None:
    """The object that gradients of `origin` go to has the memory of `data` from now on."""
    state: Any = record_function(space, with_data, origin, data)
    if not is_known_leaf(origin):  # a result of another operation stays where it is in autograd's graph
        become(value, state)
        return
    recorder = value.recorder
    with recorder.fakes.executor.mode, internals.DisableTorchFunctionSubclass():
        fake = data.fake.detach()
        if value.meta is not None and value.meta.is_view:
            fake = fake.view_as(fake)  # it stays a view, as which eager words errors
        fake.requires_grad_()
    value._node, value._fake, value.root = state.node, fake, state.root
    value.operation, value.path = None, ()
    value.meta = recorder.fakes.describe(fake)
    recorder.tracked.note(value)
