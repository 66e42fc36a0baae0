"""Operators in the place of torch functions whose C++ code reads numbers out of a tensor.

    packed = pack_padded_sequence(x, lengths)       # as many rows as there are in `lengths`, which no fake tensor knows

Fake tensors cannot run such a function, nor can AOTAutograd. The operator in its place can: its fake result has symbols
for the sizes that are known when the graph runs, its kernel is the function itself, and so is what computes gradients,
as an operator that runs the function again. A backend that runs the operations as they were recorded is given torch's
function.
"""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import torch
import torch.library

from stator.pytorch import internals
from stator.pytorch.nesting import map_leaves, tensors_in
from stator.pytorch.own_operators import define, library

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stator.pytorch.types import Args, Function, Nested, Operator

__all__ = ["Reading", "new_size"]


class Reading:
    """What is known of one such function.

    Attributes:
        name: of the operator, in torch's library.
        schema: its parameters and results, as torch writes them.
        real: the function.
        fake: what it gives for fake tensors.
        differentiable: the positions of the parameters that have gradients.
        tags: what torch is told of the operator.
    """

    tags: tuple[torch.Tag, ...] = ()

    def __init__(self, name: str, schema: str, real: Function, fake: Function, differentiable: tuple[int, ...]) -> None:
        self.name = name
        self.schema = schema
        self.real = real
        self.fake = fake
        self.differentiable = differentiable

    @functools.cached_property
    def operator(self) -> Operator:
        """The operator, registered when it is first used."""
        parameters, _, _ = self.schema.partition(" -> ")
        of_gradients = f"(Tensor[] grads, {parameters[1:]} -> Tensor[]"
        define(f"{self.name}_backward", of_gradients, self._gradients, self._fake_gradients)
        made = define(self.name, self.schema, self.real, self.fake, tags=self.tags)
        name = f"stator::{self.name}"
        torch.library.register_autograd(name, self._backward, setup_context=self._set_up, lib=library())
        return made

    def _set_up(self, ctx: Any, inputs: Args, output: Nested) -> None:
        tensors = [*tensors_in(inputs)]
        places = iter(range(len(tensors)))
        ctx.save_for_backward(*tensors)
        ctx.places = map_leaves(lambda leaf: _Place(next(places)) if isinstance(leaf, torch.Tensor) else leaf, inputs)
        ctx.results = [*tensors_in(output)]

    def _backward(self, ctx: Any, *grads: torch.Tensor | None) -> Nested:
        saved = ctx.saved_tensors
        inputs = map_leaves(lambda leaf: saved[leaf.index] if isinstance(leaf, _Place) else leaf, ctx.places)
        given = [
            torch.zeros_like(result) if grad is None else grad
            for grad, result in zip(grads, ctx.results, strict=True)
            if result.dtype.is_floating_point
        ]
        given += self._needed_again(ctx.results)
        made = iter(getattr(torch.ops.stator, f"{self.name}_backward")(given, *inputs))
        return tuple(
            map_leaves(lambda leaf: next(made), item) if place in self.differentiable else None
            for place, item in enumerate(inputs)
        )

    def _needed_again(self, results: list[torch.Tensor]) -> list[torch.Tensor]:
        """Those results that `_gradients` is given behind the gradients."""
        return []

    def _wanted(self, inputs: Args) -> list[torch.Tensor]:
        return [*tensors_in([inputs[place] for place in self.differentiable])]

    def _gradients(self, grads: list[torch.Tensor], *inputs: Any) -> list[torch.Tensor]:
        """The gradients of all tensors that have any, from those of the results that are no integers."""
        with recorded_by_autograd():
            leaves = tuple(
                map_leaves(_leaf, item) if place in self.differentiable else item for place, item in enumerate(inputs)
            )
            results = [result for result in tensors_in(self.real(*leaves)) if result.requires_grad]
        wanted = self._wanted(leaves)
        if len(results) != len(grads):
            raise RuntimeError(f"stator::{self.name}: the gradients of {len(results)} results, given {len(grads)}")
        made = torch.autograd.grad(results, wanted, grads, allow_unused=True)
        return [
            (torch.zeros_like(leaf) if grad is None else grad).clone(memory_format=torch.contiguous_format)
            for grad, leaf in zip(made, wanted, strict=True)
        ]

    def _fake_gradients(self, grads: list[torch.Tensor], *inputs: Any) -> list[torch.Tensor]:
        return [torch.empty_like(t, memory_format=torch.contiguous_format) for t in self._wanted(inputs)]


class _Place:
    """Where a tensor that is saved stood among the arguments."""

    def __init__(self, index: int) -> None:
        self.index = index


def _leaf(item: Nested) -> Nested:
    return item.detach().requires_grad_() if isinstance(item, torch.Tensor) else item


@contextlib.contextmanager
def recorded_by_autograd() -> Iterator[None]:
    """Autograd records what is computed inside, in the kernel of an operator too: torch leaves autograd out there.

    It does so where tensors that require gradients are given to an operator, as in a graph with its own backward pass.
    """
    keys, key = internals.dispatch_keys_of, internals.dispatch_key
    excluded = internals.excluded_keys()
    for each in (key.AutogradFunctionality, key.AutogradNestedTensor, key.ADInplaceOrView):
        excluded = excluded - keys(each)
    with internals.force_dispatch_keys(internals.included_keys(), excluded), torch.enable_grad():
        yield


def new_size() -> Any:
    """A size that is known when the graph runs."""
    return torch.library.get_ctx().new_dynamic_size()
