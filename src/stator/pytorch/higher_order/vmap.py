"""`torch.vmap`: the function is traced for one example, and becomes one node that maps the graph of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator.pytorch import internals
from stator.pytorch.graph.subgraph import record_module
from stator.pytorch.higher_order.body import Body, flatten, recorded, refusal, unflatten, whole
from stator.pytorch.higher_order.transformed import Mapped
from stator.pytorch.state.saved_hooks import SavedHooks
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import register
from stator.space.value import NotKnown, Value

if TYPE_CHECKING:
    from stator.space.space import Space

_NAME = "torch.func.vmap"


def _implementation(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)`."""
    function, in_dims, out_dims, *options = [arg.force() for arg in args[:5]]
    randomness, chunk_size = map(space.known, options)
    if NotKnown in (randomness, chunk_size):
        raise refusal(_NAME, "its options are not known")
    with whole(internals.vmap_impl, _NAME):
        mapping = _Mapping(space)
        inner = mapping.examples(space.new_tuple(args[5:]), in_dims)
        with space.trace.extension(SavedHooks).entered("vmap", mapping.details(args[3], chunk_size)):
            mapping.body.trace(function, inner, kwargs, once=True)
        mapping.check_results()
        out = mapping.dims(out_dims, mapping.body.spec)
        free = mapping.body.graph.free(mapping.body.results)
        graph = mapping.body.graph.close(mapping.body.results, free)
        module = Mapped(graph, tuple(mapping.in_dims), tuple(out), randomness, chunk_size)
        operands = [*mapping.mapped, *free]
        return mapping.body.answer(
            recorded(space, _NAME, lambda: record_module(space.trace.recorder, "vmap", module, operands))
        )


class _Mapping:
    """One call."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.body = Body(space, _NAME)
        #: the tensors that are mapped over, and their dimensions
        self.mapped: list[TensorValue] = []
        self.in_dims: list[int] = []

    def details(self, randomness: Value, chunk_size: object) -> list[Value]:
        """What the `vmap` of a Function is told: the size of the batch, and how random numbers are drawn."""
        if chunk_size is not None:
            return []
        sizes = self.space.getattr(self.mapped[0], "shape")
        return [self.space.unpack(sizes)[self.in_dims[0]], randomness]

    def dims(self, prefix: Value, spec: Value) -> list[int | None]:
        """The dimension of each leaf of a pytree of this structure, of which those given are a prefix."""
        broadcast = self.space.existing(internals.broadcast_prefix)
        flat = self.space.call(broadcast, [prefix, spec], {}).force()
        if flat.is_none():
            raise refusal(_NAME, "its dimensions are given for other structures")
        return [self.space.known(dim.force()) for dim in self.space.unpack(flat)]

    def examples(self, args: Value, in_dims: Value) -> list[Value]:
        """What the function is given: one example of each batch."""
        leaves, spec = flatten(self.space, args)
        dims = self.dims(in_dims, spec)
        inner = [leaf if dim is None else self.example(leaf, dim) for leaf, dim in zip(leaves, dims, strict=True)]
        sizes = [value.shape[dim] for value, dim in zip(self.mapped, self.in_dims, strict=True)]
        if not sizes or not all(bool(size == sizes[0]) for size in sizes):
            raise refusal(_NAME, "no argument is mapped, or they are of different sizes")
        return self.space.unpack(unflatten(self.space, inner, spec))

    def example(self, value: Value, dim: object) -> Value:
        """One example of a batch."""
        ndim = len(value.shape) if isinstance(value, TensorValue) else 0
        if not isinstance(value, TensorValue) or type(dim) is not int or not -ndim <= dim < ndim:
            raise refusal(_NAME, "an argument has no such dimension")
        dim %= ndim
        self.mapped.append(value)
        self.in_dims.append(dim)
        with self.body.recorder.fakes.executor.mode:
            like = value.fake.select(dim, 0) if value.shape[dim] != 0 else _no_example(value.fake, dim)
        return self.body.graph.example(like)

    def check_results(self) -> None:
        """torch stacks tensors, and nothing else."""
        for leaf in self.body.leaves:
            if not isinstance(leaf, TensorValue) or leaf.cls not in PLAIN_CLASSES:
                raise refusal(_NAME, "the function gives something else than tensors")


def _no_example(batch: torch.Tensor, dim: int) -> torch.Tensor:
    """An example of a batch that has none."""
    with torch.no_grad():
        like = batch.new_empty([size for i, size in enumerate(batch.shape) if i != dim])
    return like.requires_grad_() if batch.requires_grad else like


def install() -> None:
    """Register the model."""
    register(internals.vmap_impl, _implementation)
