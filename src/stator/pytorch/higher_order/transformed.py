"""What runs in place of a transform of torch.func: a module that applies the transform to the graph of the function.

The inputs of the graph are the tensors that the transform is about, and behind them what the function captures, which
no transform looks at. AOTAutograd traces through the module, and so meets torch's own transform.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    import torch.fx

    from stator.pytorch.types import Nested

__all__ = ["Derivatives", "Mapped", "Pulled", "Pushed", "Transformed"]

Tensors = tuple[torch.Tensor, ...]


class Transformed(torch.nn.Module):
    """Applies a transform to a graph, of which the first `count` inputs are what it is about.

    Args:
        outputs: how many results of the graph are transformed; the others are given as they are (`aux`).
    """

    #: how messages call it
    told_as = "a transform of torch.func"

    def __init__(self, graph: torch.fx.GraphModule, count: int, outputs: int) -> None:
        super().__init__()
        self.graph = graph
        self.count = count
        self.outputs = outputs

    def split(self, operands: Tensors) -> tuple[Callable[..., tuple[Tensors, Tensors]], Tensors, Tensors]:
        """The function of the first operands alone, these, and the operands that it leaves over.

        The function gives what is to be transformed, and the rest.
        """
        inputs = len([node for node in self.graph.graph.nodes if node.op == "placeholder"])
        free = operands[self.count : inputs]

        def function(*primals: torch.Tensor) -> tuple[Tensors, Tensors]:
            results = self.graph(*primals, *free)
            return tuple(results[: self.outputs]), tuple(results[self.outputs :])

        return function, operands[: self.count], operands[inputs:]


class Derivatives(Transformed):
    """`grad_and_value`: the gradients, the value, and the rest."""

    told_as = "torch.func.grad"

    def forward(self, *operands: torch.Tensor) -> Tensors:
        function, primals, _ = self.split(operands)

        def scalar(*primals: torch.Tensor) -> tuple[torch.Tensor, Tensors]:
            (value,), rest = function(*primals)
            return value, rest

        argnums = tuple(range(self.count))
        gradients, (value, rest) = torch.func.grad_and_value(scalar, argnums, has_aux=True)(*primals)
        return (*gradients, value, *rest)


class Pulled(Transformed):
    """`vjp`: the results and the rest; with cotangents behind the other operands, the gradients that these lead to."""

    told_as = "torch.func.vjp"

    def forward(self, *operands: torch.Tensor) -> Tensors:
        function, primals, cotangents = self.split(operands)
        results, pull, rest = torch.func.vjp(function, *primals, has_aux=True)
        return tuple(pull(cotangents)) if cotangents else (*results, *rest)


class Pushed(Transformed):
    """`jvp`, with the tangents behind the other operands: the results, their tangents, and the rest."""

    told_as = "torch.func.jvp"

    def __init__(self, graph: torch.fx.GraphModule, count: int, outputs: int, strict: bool) -> None:
        super().__init__(graph, count, outputs)
        self.strict = strict

    def forward(self, *operands: torch.Tensor) -> Tensors:
        function, primals, tangents = self.split(operands)
        results, pushed, rest = torch.func.jvp(function, primals, tangents, strict=self.strict, has_aux=True)
        return (*results, *pushed, *rest)


class Mapped(Transformed):
    """`vmap` over the dimensions `in_dims` say of the first inputs."""

    told_as = "torch.func.vmap"

    def __init__(
        self,
        graph: torch.fx.GraphModule,
        in_dims: tuple[int, ...],
        out_dims: tuple[int | None, ...],
        randomness: str,
        chunk_size: int | None,
    ) -> None:
        super().__init__(graph, len(in_dims), len(out_dims))
        self.in_dims = in_dims
        self.out_dims = out_dims
        self.randomness = randomness
        self.chunk_size = chunk_size

    def forward(self, *operands: torch.Tensor) -> Nested:
        function, examples, _ = self.split(operands)
        one = lambda *given: function(*given)[0]  # noqa: E731
        return torch.vmap(one, self.in_dims, self.out_dims, self.randomness, chunk_size=self.chunk_size)(*examples)
