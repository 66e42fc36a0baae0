"""`torch.vmap`: the function is traced for one example, and becomes one node that maps the graph of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from stator import errors
from stator.pytorch import internals
from stator.pytorch.fake.failure import Failure
from stator.pytorch.fake.metadata import meta_of
from stator.pytorch.graph.subgraph import Subgraph, record_module
from stator.pytorch.nesting import items_of, map_values, rebuilt
from stator.pytorch.tensors.classes import PLAIN_CLASSES
from stator.pytorch.tensors.tensor import TensorValue
from stator.space.protocol import register
from stator.space.value import NotKnown, Unsupported, Value

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.types import Nested
    from stator.space.space import Space


class MappedModule(torch.nn.Module):
    """A graph that is mapped over the first dimensions `in_dims` say of its inputs; further inputs are not."""

    def __init__(self, graph: torch.fx.Graph, in_dims: tuple[int, ...], out_dims: Nested, randomness: str) -> None:
        super().__init__()
        self.graph = graph
        self.in_dims = in_dims
        self.out_dims = out_dims
        self.randomness = randomness

    def forward(self, *operands: torch.Tensor) -> Nested:
        dims = self.in_dims + (None,) * (len(operands) - len(self.in_dims))
        return torch.vmap(self.graph, dims, self.out_dims, self.randomness)(*operands)


def _refusal(why: str) -> Unsupported:
    return Unsupported(errors.UnsupportedTensorOperation("torch.func.vmap", why))


def _implementation(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)`."""
    function, *options = args[:5]
    in_dims, out_dims, randomness, chunk_size = [space.known(value.force()) for value in options]
    if NotKnown in (in_dims, out_dims, randomness) or chunk_size is not None:
        raise _refusal("its options are not known, or ask for chunks")
    mapping = _Mapping(space)
    inner = mapping.examples(space.new_tuple(args[5:]), in_dims)
    return mapping.run(function, space.unpack(inner), kwargs, out_dims, str(randomness))


class _Mapping:
    """One call."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.graph = Subgraph(space.trace.recorder)
        #: the tensors that are mapped over
        self.mapped: list[TensorValue] = []
        self.in_dims: list[int] = []
        #: the tensors that the function gives
        self.results: list[TensorValue] = []
        self.out_dims: list[int | None] = []

    def run(
        self, function: Value, inner: list[Value], kwargs: dict[str, Value], out_dims: Nested, random: str
    ) -> Value:
        """Trace the function for one example, and record that it is mapped."""
        sizes = [value.shape[dim] for value, dim in zip(self.mapped, self.in_dims, strict=True)]
        if not sizes or not all(bool(size == sizes[0]) for size in sizes):
            raise _refusal("no argument is mapped, or they are of different sizes")
        before = self.effects()
        with self.graph.recording():
            result = self.space.call(function, inner, kwargs).force()
        if self.effects() != before:
            raise _refusal("the function does more than compute")
        self.collect(result, out_dims)
        free = self.graph.free(list(self.results))
        graph = self.graph.close(list(self.results), free)
        module = MappedModule(graph, tuple(self.in_dims), tuple(self.out_dims), random)
        made = iter(self.space.unpack(self.recorded(module, [*self.mapped, *free])))
        return map_values(self.space, lambda tensor: next(made), result.force())

    def recorded(self, module: MappedModule, operands: list[Value]) -> Value:
        try:
            return record_module(self.space.trace.recorder, "vmap", module, operands)
        except Failure as failure:
            raise _refusal(str(failure.error).partition("\n")[0][:200]) from None

    def effects(self) -> tuple[object, ...]:
        """What changes when something is written, drawn or noted."""
        recorder = self.space.trace.recorder
        effects = self.space.trace.effects
        done = recorder.effects
        return effects.count, len(done.rewritten), done.random, done.acts, recorder.state.key

    # -- structures of tensors --------------------------------------------------------------------------------------

    def examples(self, value: Value, dims: Nested) -> Value:
        """What the function is given for an argument: one example of each batch."""
        value = value.force()
        items = items_of(self.space, value)
        if dims is None or items is None:
            return value if dims is None else self.example(value, dims)
        return rebuilt(self.space, value, [self.examples(*pair) for pair in self.pairs(value, items, dims)])

    def pairs(self, value: Value, items: list[Value], dims: Nested) -> list[tuple[Value, Nested]]:
        """The items of a sequence, with what is said of the dimensions of each."""
        each = list(dims) if isinstance(dims, tuple | list) else [dims] * len(items)
        if len(each) != len(items) or value.cls not in (tuple, list):
            raise _refusal("its dimensions are given for other structures")
        return list(zip(items, each, strict=True))

    def example(self, value: Value, dim: Nested) -> Value:
        """One example of a batch."""
        ndim = len(value.shape) if isinstance(value, TensorValue) else 0
        if not isinstance(value, TensorValue) or type(dim) is not int or not -ndim <= dim < ndim:
            raise _refusal("an argument has no such dimension")
        dim %= ndim
        self.mapped.append(value)
        self.in_dims.append(dim)
        recorder = self.space.trace.recorder
        with recorder.fakes.executor.mode:
            like = value.fake.select(dim, 0) if value.shape[dim] != 0 else _no_example(value.fake, dim)
        made = TensorValue(recorder, torch.Tensor, meta_of(like))
        made._fake = like
        self.graph.input(f"example_{len(self.graph.given)}", made)
        return made

    def collect(self, value: Value, dims: Nested) -> None:
        """Note the tensors in a result of the function, and the dimensions that they are stacked in."""
        value = value.force()
        items = items_of(self.space, value)
        if items is not None:
            for part, dim in self.pairs(value, items, dims):
                self.collect(part, dim)
        elif isinstance(value, TensorValue) and value.cls in PLAIN_CLASSES and type(dims) is int:
            self.results.append(value)
            self.out_dims.append(dims)
        else:
            raise _refusal("the function gives something else than tensors")


def _no_example(batch: torch.Tensor, dim: int) -> torch.Tensor:
    """An example of a batch that has none."""
    with torch.no_grad():
        like = batch.new_empty([size for i, size in enumerate(batch.shape) if i != dim])
    return like.requires_grad_() if batch.requires_grad else like


def install() -> None:
    """Register the model."""
    register(internals.vmap_impl, _implementation)
