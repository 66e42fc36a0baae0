"""Programs of two ranks that differ, harmfully or not; the line where the harm begins says so in a comment."""

from __future__ import annotations

import inspect
import logging
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

import stator

Program = Callable[[int], Any]


def compiled(function: Any) -> Any:
    return stator.compile(function, backend="eager")


def reduced(x: Any) -> Any:
    y = x * 2
    dist.all_reduce(y)
    return y


def rows(count: int = 4) -> Any:
    return torch.ones(count, 3)


def line_of(program: Program) -> int:
    """The line that the error must name."""
    lines, first = inspect.getsourcelines(program)
    (found,) = (first + number for number, line in enumerate(lines) if "# here" in line)
    return found


#: when this rank came to where its collectives differ from the other's
arrived: list[float] = []


def arrive() -> None:
    arrived.append(time.monotonic())


# -- harmful ----------------------------------------------------------------------------------------------------------


def branch_on_rank(rank: int) -> Any:
    @compiled
    def step(x: Any) -> Any:
        y = x + 1
        if dist.get_rank() == 0:
            dist.all_reduce(y)  # here
        return y

    return step(rows())


def branch_on_data(rank: int) -> Any:
    @compiled
    def step(x: Any) -> Any:
        y = x + 1
        if y.sum() > 0:
            dist.all_reduce(y)  # here
        return y * 2

    return step(rows() * (1 if rank else -5))


def other_size(rank: int) -> Any:
    @compiled
    def step(x: Any) -> Any:
        y = x + 1
        dist.all_reduce(y)  # here
        return y

    return step(rows(4 + rank))


def missing_layer(rank: int) -> Any:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(3 - rank))

        def forward(self, x: Any) -> Any:
            for layer in self.layers:
                x = layer(x).detach()
                dist.all_reduce(x)  # here
            return x

    return compiled(Model())(rows())


def flag(rank: int) -> Any:
    @compiled
    def step(x: Any, sync: bool) -> Any:
        y = x + 1
        if sync:
            dist.all_reduce(y)  # here
        return y

    return step(rows(), rank == 1)


def order_of_a_dict(rank: int) -> Any:
    @compiled
    def step(parts: Any) -> Any:
        for part in parts.values():
            dist.all_reduce(part)  # here
        return parts

    parts = {"a": rows(2), "b": rows(5)}
    return step(parts if rank else dict(reversed(parts.items())))


def other_reduction(rank: int) -> Any:
    @compiled
    def step(x: Any, op: Any) -> Any:
        y = x + 1
        dist.all_reduce(y, op=op)  # here
        return y

    return step(rows(), dist.ReduceOp.MAX if rank else dist.ReduceOp.SUM)


def other_dtype(rank: int) -> Any:
    @compiled
    def step(x: Any) -> Any:
        y = x + 1
        dist.all_reduce(y)  # here
        return y

    return step(rows().to(torch.float64 if rank else torch.float32))


def other_collective(rank: int) -> Any:
    @compiled
    def step(x: Any, kind: str) -> Any:
        y = x + 1
        (dist.all_reduce if kind == "all" else dist.broadcast)(y, **({} if kind == "all" else {"src": 0}))  # here
        return y

    return step(rows(), ["all", "one"][rank])


def in_a_recompile(rank: int) -> Any:
    """One rank compiles anew what the other has in its cache."""

    @compiled
    def step(x: Any, kind: int) -> Any:
        y = x + 1
        if kind == 0:
            dist.all_reduce(y)
        else:
            dist.all_reduce(y[:1])  # here
        return y

    step(rows(), 0)
    arrive()
    return step(rows(), rank)


def eager_meets_graph(rank: int) -> Any:
    def step(x: Any) -> Any:
        y = x + 1
        dist.all_reduce(y)  # here
        return y

    if rank == 0:
        return compiled(step)(rows())
    compiled(lambda x: x + 2)(rows())
    arrive()
    return dist.broadcast(rows(), 0)


def ends_early(rank: int) -> Any:
    @compiled
    def step(x: Any) -> Any:
        y = x + 1
        dist.all_reduce(y)  # here
        return y

    if rank == 0:
        step(rows())
    else:
        compiled(lambda x: x + 2)(rows())
        arrive()


def in_a_function(rank: int) -> Any:
    class Reduced(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.clone()
            dist.all_reduce(y)  # here
            return y

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            return gradient

    @compiled
    def step(x: Any, sync: bool) -> Any:
        y = x * 2
        return Reduced.apply(y) if sync else y

    return step(rows().requires_grad_(), rank == 0)


HARMFUL: dict[str, Program] = {
    f.__name__: f
    for f in (
        *(branch_on_rank, branch_on_data, other_size, missing_layer, flag, order_of_a_dict, other_reduction),
        *(other_dtype, in_a_recompile, eager_meets_graph, ends_early, other_collective, in_a_function),
    )
}

# -- harmless ---------------------------------------------------------------------------------------------------------


def one_logs(rank: int) -> Any:
    @compiled
    def step(x: Any) -> Any:
        y = x + 1
        if dist.get_rank() == 0:
            logging.getLogger("nobody").info("sum %s", y.sum())
        dist.all_reduce(y)
        return y

    return step(rows())


def one_breaks(rank: int) -> Any:
    @compiled
    def step(x: Any) -> Any:
        y = x + 1
        dist.all_reduce(y)
        if dist.get_rank() == 0:
            stator.graph_break()
        dist.all_reduce(y)
        return y

    return step(rows())


def one_saves(rank: int) -> Any:
    @compiled
    def step(x: Any) -> Any:
        y = x + 1
        if dist.get_rank() == 0:
            with tempfile.TemporaryFile() as file:
                torch.save(y, file)
        dist.all_reduce(y)
        return y

    return step(rows())


def one_has_compiled_before(rank: int) -> Any:
    @compiled
    def step(x: Any, n: int) -> Any:
        y = x * n
        dist.all_reduce(y)
        return y

    for n in (1, 2, 3) if rank else (1, 1, 1):
        made = step(rows(), n)
    return made


def another_order(rank: int) -> Any:
    double, square = compiled(lambda x: x * 2), compiled(lambda x: x * x)
    for function in (double, square) if rank else (square, double):
        function(rows())
    return compiled(reduced)(rows())


def one_compiles_more(rank: int) -> Any:
    if rank == 0:
        for n in range(3):
            compiled(lambda x, n=n: x * n)(rows())
    return compiled(reduced)(rows())


def one_runs_eagerly(rank: int) -> Any:
    return (compiled(reduced) if rank else reduced)(rows())


def other_operations(rank: int) -> Any:
    @compiled
    def step(x: Any) -> Any:
        y = x.sin() if dist.get_rank() == 0 else x.cos() + 1
        dist.all_reduce(y)
        return y

    return step(rows())


def other_shape_of_what_stays(rank: int) -> Any:
    @compiled
    def step(x: Any) -> Any:
        total = x.sum()
        dist.all_reduce(total)
        return x * total

    for count in (4, 5, 6, 7) if rank else (4, 4, 4, 4):
        made = step(rows(count))
    return made


def uneven_parts(rank: int) -> Any:
    @compiled
    def step(x: Any) -> Any:
        sent = [1, x.shape[0] - 1]
        received = [1, 1] if dist.get_rank() == 0 else [x.shape[0] - 1] * 2
        made = x.new_empty(sum(received), 3)
        dist.all_to_all_single(made, x * 2, received, sent)
        return made

    return step(rows(5))


def branches_that_meet(rank: int) -> Any:
    """Each rank has a function of its own for the same collectives."""

    @compiled
    def first(x: Any) -> Any:
        y = x + 1
        dist.all_reduce(y)
        return y

    @compiled
    def second(x: Any) -> Any:
        y = x.exp()
        dist.all_reduce(y)
        return y

    return (second if rank else first)(rows())


def groups_of_one(rank: int) -> Any:
    own = [dist.new_group([each]) for each in range(2)]

    @compiled
    def step(x: Any) -> Any:
        y = x + 1
        if dist.get_rank() == 0:
            dist.all_reduce(y, group=own[0])
        dist.all_reduce(y)
        return y

    return step(rows())


def transposed_shape(rank: int) -> Any:
    return compiled(reduced)(torch.ones((3, 4) if rank else (4, 3)))


HARMLESS: dict[str, Program] = {
    f.__name__: f
    for f in (
        *(one_logs, one_breaks, one_saves, one_has_compiled_before, another_order, one_compiles_more),
        *(one_runs_eagerly, other_operations, other_shape_of_what_stays, uneven_parts, branches_that_meet),
        *(groups_of_one, transposed_shape),
    )
}
