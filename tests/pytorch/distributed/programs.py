"""Programs that communicate, for groups of two: each takes a tensor of an even number of rows, three numbers each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.checkpoint import checkpoint

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


def reduce(x: Any) -> Any:
    y = x * 2
    dist.reduce(y, 1)
    return y + 1 if dist.get_rank() == 1 else x


def gather(x: Any) -> Any:
    parts = [torch.empty_like(x) for _ in range(2)] if dist.get_rank() == 1 else None
    dist.gather(x * 3, parts, dst=1)
    return x * (parts[0] - parts[1]) if parts else x


def scatter(x: Any) -> Any:
    made = x.new_empty(x.shape[0] // 2, 3)
    parts = list((x * 2).chunk(2))
    dist.scatter(made, parts if dist.get_rank() == 0 else None, src=0)
    return x[: x.shape[0] // 2] * made


def all_gather_with_own(x: Any) -> Any:
    """Gradients go to what the rank itself has given."""
    parts = [torch.empty_like(x) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, x * 3)
    parts[dist.get_rank()] = x
    return torch.cat(parts).sin()


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


def reduce_scatter(x: Any) -> Any:
    made = x.new_empty(x.shape[0] // 2, 3)
    dist.reduce_scatter(made, list(x.chunk(2)))
    return made * 2


def reduce_scatter_tensor(x: Any) -> Any:
    made = x.new_empty(x.shape[0] // 2, 3)
    dist.reduce_scatter_tensor(made, x)
    return made * 2


def all_to_all_single(x: Any) -> Any:
    made = torch.empty_like(x)
    dist.all_to_all_single(made, x * 2)
    return x * made


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


# -- between two ranks -------------------------------------------------------------------------------------------------


def sent_and_received(x: Any) -> Any:
    """One rank sends first: else both would wait."""
    y, z, other = x * 2, torch.empty_like(x), 1 - dist.get_rank()
    if other:
        dist.send(y, other)
        assert dist.recv(z, other) == other
    else:
        dist.recv(z, other)
        dist.send(y, other)
    return z - x


def sent_side_by_side(x: Any) -> Any:
    y, z, other = x * 2, torch.empty_like(x), 1 - dist.get_rank()
    first, second = dist.isend(y, other), dist.irecv(z, other)
    w = x.sin()
    for work in first, second:
        assert work.wait()
    return z * w + y


def sent_in_order(x: Any) -> Any:
    """Nothing but their order tells messages of one tag apart, and nobody reads the first."""
    made, other = x.new_empty(3, *x.shape), 1 - dist.get_rank()
    sent = [dist.isend(x.detach() + i, other, tag=i // 2) for i in range(3)]
    received = [dist.irecv(made[i], other, tag=i // 2) for i in (2, 0, 1)]
    _wait_for([*received, *sent])
    return made[1] - made[2] * x


def ring(x: Any) -> Any:
    """What one rank has goes round, as keys and values do in attention over a sequence in parts."""
    rank, own, total = dist.get_rank(), x.detach() * 2, x * 0
    for _ in range(2):
        coming = torch.empty_like(own)
        ops = [dist.P2POp(dist.isend, own, 1 - rank), dist.P2POp(dist.irecv, coming, 1 - rank)]
        works = dist.batch_isend_irecv(ops)
        total = total + (x @ own.T).softmax(-1) @ own
        _wait_for(works)
        own = coming
    return total


def only_sent(x: Any) -> Any:
    """A rank reads nothing of what the other waits for."""
    z = torch.zeros(3)
    if dist.get_rank():
        dist.send(x.detach().sum(0), 0)
    else:
        dist.recv(z, 1)
    return x + 1


# -- functional -------------------------------------------------------------------------------------------------------


def functional_all_reduce(x: Any) -> Any:
    return functional.all_reduce(x * 2, "sum", dist.group.WORLD) * x


def functional_waited(x: Any) -> Any:
    return functional.wait_tensor(functional.all_reduce(x, "sum", dist.group.WORLD)) + x


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


def functional_handle(x: Any) -> Any:
    """In eager execution it is a tensor that waits; in a graph a plain one."""
    made = functional.all_reduce(x * 2, "sum", dist.group.WORLD)
    return made.wait() + x


# -- groups -----------------------------------------------------------------------------------------------------------

#: groups and meshes that exist before
MADE: dict[str, Any] = {}


def prepare() -> None:
    """Make them."""
    MADE["both"], MADE["own"] = dist.new_group([0, 1]), [dist.new_group([rank]) for rank in range(2)]
    MADE["mesh"] = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))
    MADE["line"] = MADE["mesh"]["tp"]


def group_of_one(x: Any) -> Any:
    y = x * 2
    dist.all_reduce(y, group=MADE["own"][dist.get_rank()])
    return y


def group_of_others(x: Any) -> Any:
    """A rank that is no member does nothing."""
    y = x * 2
    dist.all_reduce(y, group=MADE["own"][0])
    return y + dist.get_rank()


def groups_by_all_names(x: Any) -> Any:
    y = functional.all_reduce(x, "sum", MADE["both"].group_name)
    y = functional.all_reduce(y, "sum", MADE["line"])
    y = functional.all_reduce(y, "sum", (MADE["mesh"], 1))
    return functional.all_reduce(y, "sum", [0, 1])


def places_in_meshes(x: Any) -> Any:
    mesh = MADE["mesh"]
    y = x * 2 + mesh.get_local_rank("tp") + mesh["tp"].get_rank() + mesh.get_coordinate()[1]
    dist.all_reduce(y, group=mesh.get_group("tp"))
    dist.all_reduce(y, group=mesh["tp"].get_group())
    return y * mesh.size(0) + mesh["tp"].size() + dist.get_group_rank(MADE["both"], 1)


class Reduced(torch.autograd.Function):
    """Tensor parallelism as libraries write it."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.clone()
        dist.all_reduce(y, group=MADE["both"])
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        made = gradient.clone()
        dist.all_reduce(made, group=MADE["both"])
        return made


def in_a_function(x: Any) -> Any:
    return Reduced.apply(x * 2) * x


# -- left to Python ---------------------------------------------------------------------------------------------------


def _exchanged(x: Any) -> Any:
    made, other = torch.empty_like(x), 1 - dist.get_rank()
    work = dist.isend(x * 2, other)
    dist.recv(made, other)
    work.wait()
    return made


def a_message_before_a_collective(x: Any) -> Any:
    """Nothing but their order in the program lets them meet those of the other rank."""
    y = _exchanged(x) + x
    dist.all_reduce(y)
    return y * 2


def a_message_behind_a_collective(x: Any) -> Any:
    y = functional.all_reduce(x * 2, "sum", dist.group.WORLD)
    return _exchanged(y.detach()) + x


class Exchanged(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return _exchanged(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return _exchanged(gradient)


def a_message_in_a_function(x: Any) -> Any:
    return Exchanged.apply(x * 2) * x


def a_message_in_a_checkpoint(x: Any) -> Any:
    """The backward pass sends it again."""
    return checkpoint(lambda y: _exchanged(y.detach()) * y.sin(), x * 2, use_reentrant=False)


def a_message_of_anyone(x: Any) -> Any:
    made, rank = torch.empty_like(x), dist.get_rank()
    if rank:
        dist.send(x * 2, 0)
    return made.copy_(x) if rank else x + dist.recv(made)


def a_message_that_is_forgotten(x: Any) -> Any:
    made, other = torch.empty_like(x), 1 - dist.get_rank()
    KEPT.append(dist.isend(x.detach(), other))
    dist.recv(made, other)
    return made + x


#: what nobody waits for
KEPT: list[Any] = []

#: with gradients or without
IN_PLACE: dict[str, Program] = {
    f.__name__: f
    for f in (
        *(all_reduce, all_reduce_maximum, all_reduce_complex, broadcast, aliases, a_part, without_gradients),
        *(of_tensors_without, waited_for, waited_elsewhere, unread, reduce, gather, scatter, all_gather_with_own),
        *(all_to_all_single, group_of_one, group_of_others, groups_by_all_names, places_in_meshes, in_a_function),
    )
}
#: on tensors that autograd knows nothing of
OTHERS: dict[str, Program] = {
    f.__name__: f
    for f in (
        *(all_gather, all_gather_numbers, all_gather_into_tensor, reduce_scatter),
        *(reduce_scatter_tensor, all_to_all_split, coalesced, arguments, waited_in_another_order),
    )
}
BETWEEN_TWO: dict[str, Program] = {
    f.__name__: f for f in (sent_and_received, sent_side_by_side, sent_in_order, ring, only_sent)
}
FUNCTIONAL: dict[str, Program] = {
    f.__name__: f
    for f in (
        *(functional_all_reduce, functional_waited, functional_all_gather, functional_all_gather_columns),
        *(functional_reduce_scatter, functional_all_to_all, functional_broadcast, functional_permute),
        *(functional_coalesced, functional_handle),
    )
}
#: program → why it breaks the graph
LEFT: dict[Program, str] = {
    a_message_before_a_collective: "are not in one graph",
    a_message_behind_a_collective: "are not in one graph",
    a_message_in_a_function: "in the body of an operation",
    a_message_in_a_checkpoint: "its function acts on",
    a_message_of_anyone: "recv",
    a_message_that_is_forgotten: "its handle leaves the graph",
}
LEFT_BY_NAME = {program.__name__: (program, why) for program, why in LEFT.items()}
PROGRAMS = {**IN_PLACE, **OTHERS, **BETWEEN_TWO, **FUNCTIONAL}
