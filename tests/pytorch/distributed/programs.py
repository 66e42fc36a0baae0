"""Programs that communicate, for groups of two: each takes a tensor of an even number of rows, three numbers each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

Program = Callable[[Any], Any]

warnings.filterwarnings("ignore", category=FutureWarning)  # functional collectives' old names


# -- in place ---------------------------------------------------------------------------------------------------------


def all_reduce(x: Any) -> Any:
    y = x * 2
    dist.all_reduce(y)
    return y + 1


def all_reduce_maximum(x: Any) -> Any:
    y = x * 2
    dist.all_reduce(y, op=dist.ReduceOp.MAX)
    return y + 1


def all_reduce_complex(x: Any) -> Any:
    y = torch.complex(x, x + 1)
    dist.all_reduce(y)
    return torch.view_as_real(y).sum()


def broadcast(x: Any) -> Any:
    y = x + dist.get_rank()
    dist.broadcast(y, src=1)
    return y * 2


def all_gather(x: Any) -> Any:
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x * 3)
    return parts[0] - parts[1]


def all_gather_numbers(x: Any) -> Any:
    parts = [torch.zeros(()) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x.sum())
    return parts[0] - parts[1]


def all_gather_into_tensor(x: Any) -> Any:
    made = x.new_empty(2 * x.shape[0], 3)
    dist.all_gather_into_tensor(made, x)
    return made * 2


def reduce_scatter_tensor(x: Any) -> Any:
    made = x.new_empty(x.shape[0] // 2, 3)
    dist.reduce_scatter_tensor(made, x)
    return made * 2


def all_to_all_single(x: Any) -> Any:
    made = torch.empty_like(x)
    dist.all_to_all_single(made, x * 2)
    return made + 1


def all_to_all_split(x: Any) -> Any:
    sent = [1, x.shape[0] - 1]
    received = [1, 1] if dist.get_rank() == 0 else [x.shape[0] - 1] * 2
    made = x.new_empty(sum(received), 3)
    dist.all_to_all_single(made, x * 2, received, sent)
    return made.sum(0)


def coalesced(x: Any) -> Any:
    y, z = x + 1, x * 2
    with dist._coalescing_manager():
        dist.all_reduce(y)
        dist.all_reduce(z)
    return y * z


def aliases(x: Any) -> Any:
    """What is written is seen through each tensor in the same memory."""
    y = x * 2
    row, flat = y[1], y.view(-1)
    dist.all_reduce(y)
    return row + 1, flat * 2, y


def a_part(x: Any) -> Any:
    y = x * 2
    dist.all_reduce(y[:2])
    return y + 1


def arguments(x: Any) -> Any:
    """A tensor that exists before."""
    dist.all_reduce(x)
    dist.broadcast(x[0], 0)
    return x + 1


def unread(x: Any) -> Any:
    """Nobody reads what one rank alone must not leave out."""
    dist.all_reduce(x * 2)
    return x + 1


def without_gradients(x: Any) -> Any:
    with torch.no_grad():
        y = x * 2
        made = x.new_empty(2 * x.shape[0], 3)
        dist.all_reduce(y)
        dist.all_gather_into_tensor(made, y)
    return x * made[: x.shape[0]]


def of_tensors_without(x: Any) -> Any:
    total = x.detach().sum()
    dist.all_reduce(total)
    return x * total


# -- asynchronous -----------------------------------------------------------------------------------------------------


def waited_for(x: Any) -> Any:
    y = x * 2
    work = dist.all_reduce(y, async_op=True)
    z = x.sin()
    work.wait()
    return y + z


def _wait_for(all_of: list[Any]) -> None:
    for work in all_of:
        assert work.wait()


def waited_elsewhere(x: Any) -> Any:
    made = [x + i for i in range(3)]
    _wait_for([dist.all_reduce(y, async_op=True) for y in made])
    return made[0] * made[1] - made[2]


def waited_in_another_order(x: Any) -> Any:
    made, y = x.new_empty(2 * x.shape[0], 3), x + 1
    first = dist.all_gather_into_tensor(made, x, async_op=True)
    second = dist.broadcast(y, 1, async_op=True)
    second.wait()
    z = y * 2
    first.wait()
    first.wait()
    return made.sum() * z


# -- functional -------------------------------------------------------------------------------------------------------


def functional_all_reduce(x: Any) -> Any:
    return functional.all_reduce(x * 2, "sum", dist.group.WORLD) * x


def functional_waited(x: Any) -> Any:
    return functional.wait_tensor(functional.all_reduce(x, "avg", dist.group.WORLD)) + x


def functional_all_gather(x: Any) -> Any:
    return functional.all_gather_tensor(x, 0, dist.group.WORLD).sin()


def functional_all_gather_columns(x: Any) -> Any:
    return functional.all_gather_tensor(x, 1, dist.group.WORLD).cos()


def functional_reduce_scatter(x: Any) -> Any:
    return functional.reduce_scatter_tensor(x * 3, "sum", 0, dist.group.WORLD) * 2


def functional_all_to_all(x: Any) -> Any:
    return functional.all_to_all_single(x * 3, None, None, dist.group.WORLD).exp()


def functional_broadcast(x: Any) -> Any:
    return functional.broadcast(x.detach() * 3, 1, dist.group.WORLD) * x


def functional_permute(x: Any) -> Any:
    return functional.permute_tensor(x.view(-1), [1, 0], dist.group.WORLD).view(x.shape) - x


def functional_coalesced(x: Any) -> Any:
    y, z = functional.all_reduce_coalesced([x + 1, x * 2], "sum", dist.group.WORLD)
    return y * z


#: with gradients or without
IN_PLACE: dict[str, Program] = {
    f.__name__: f
    for f in (
        *(all_reduce, all_reduce_maximum, all_reduce_complex, broadcast, aliases, a_part, without_gradients),
        *(of_tensors_without, waited_for, waited_elsewhere, unread),
    )
}
#: on tensors that autograd knows nothing of
OTHERS: dict[str, Program] = {
    f.__name__: f
    for f in (
        *(all_gather, all_gather_numbers, all_gather_into_tensor),
        *(reduce_scatter_tensor, all_to_all_single, all_to_all_split, coalesced, arguments, waited_in_another_order),
    )
}
FUNCTIONAL: dict[str, Program] = {
    f.__name__: f
    for f in (
        *(functional_all_reduce, functional_waited, functional_all_gather, functional_all_gather_columns),
        *(functional_reduce_scatter, functional_all_to_all, functional_broadcast, functional_permute),
        functional_coalesced,
    )
}
PROGRAMS = {**IN_PLACE, **OTHERS, **FUNCTIONAL}
