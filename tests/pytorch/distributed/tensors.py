"""Programs on distributed tensors, and what eager execution and the compiled program are to agree on, on each rank."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    full,
    init_device_mesh,
    ones,
    zeros,
)
from torch.distributed.tensor.experimental import implicit_replication
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

import stator

Program = Callable[[torch.Tensor], Any]

warnings.filterwarnings("ignore", category=UserWarning)  # DTensor's, of random operators on the CPU


def redistributed(mesh: Any) -> Program:
    """From each placement to another."""

    def f(x: torch.Tensor) -> Any:
        rows, partial = (DTensor.from_local(x, mesh, [placement]) for placement in (Shard(0), Partial()))
        columns = rows.redistribute(placements=[Shard(1)])
        summed = partial.redistribute(placements=[Shard(1)]) + columns.sum(0)
        return (
            rows,
            columns.to_local(),
            summed,
            summed.redistribute(placements=[Replicate()]),
            rows.mean().full_tensor(),
        )

    return f


def made_inside(mesh: Any) -> Program:
    """Distributed tensors that torch's Python makes of their parts."""

    def f(x: torch.Tensor) -> Any:
        rows = DTensor.from_local(x, mesh, [Shard(0)])
        filled = full(rows.shape, 0.5, device_mesh=mesh, placements=[Shard(0)])
        number = full((), 3.0, device_mesh=mesh, placements=[Replicate()])
        columns = zeros(5, len(x), device_mesh=mesh, placements=[Shard(1)], dtype=torch.float64)
        columns.to_local().add_(2)
        partial = ones(len(x), 3, device_mesh=mesh, placements=[Partial()]).mul_(2)
        spread = distribute_tensor(torch.arange(6.0).view(2, 3), mesh, [Shard(0)])
        return (
            filled * rows * number,
            filled,
            columns,
            columns.cos().full_tensor(),
            partial.full_tensor() + x,
            spread * 2,
        )

    return f


def leaf_inside(mesh: Any) -> Program:
    def f(x: torch.Tensor) -> Any:
        weight = ones(3, device_mesh=mesh, placements=[Replicate()], requires_grad=True)
        made = DTensor.from_local(x, mesh, [Shard(0)]) * weight
        return made.full_tensor(), torch.tensor(float(weight.is_leaf and weight.requires_grad))

    return f


def behind_a_break(mesh: Any) -> Program:
    def f(x: torch.Tensor) -> Any:
        made = DTensor.from_local(x, mesh, [Shard(0)]) @ DTensor.from_local(x.t(), mesh, [Replicate()])
        unused = made.cos()
        stator.graph_break()
        return made.sin().full_tensor(), unused.detach()

    return f


class Block(nn.Module):
    """A layer of a transformer, as those of Llama are."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8, bias=False) for _ in range(4))
        self.up, self.gate, self.down = nn.Linear(8, 16), nn.Linear(8, 16), nn.Linear(16, 8)
        self.before, self.between = nn.RMSNorm(8), nn.RMSNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.before(x)
        q, k, v = (layer(y).unflatten(-1, (-1, 4)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).flatten(2))
        y = self.between(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


PLAN = {
    **dict.fromkeys(("q", "k", "v", "up", "gate"), ColwiseParallel()),
    **dict.fromkeys(("o", "down"), RowwiseParallel()),
}
SEQUENCE_PLAN = {
    **dict.fromkeys(("q", "k", "v", "up", "gate"), ColwiseParallel(input_layouts=Shard(1))),
    **dict.fromkeys(("o", "down"), RowwiseParallel(output_layouts=Shard(1))),
    **dict.fromkeys(("before", "between"), SequenceParallel(use_local_output=True)),
}


def transformer(mesh: Any, layers: int, sequence: bool = False) -> nn.Module:
    torch.manual_seed(0)
    blocks = nn.Sequential(*[Block() for _ in range(layers)])
    for block in blocks:
        parallelize_module(block, mesh, SEQUENCE_PLAN if sequence else PLAN)
    model = nn.Sequential(nn.Embedding(16, 8), blocks, nn.RMSNorm(8), nn.Linear(8, 16))
    if sequence:
        embedding = RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1))
        plan = {
            "0": embedding,
            "2": SequenceParallel(),
            "3": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate()),
        }
    else:
        plan = {"0": RowwiseParallel(input_layouts=Replicate()), "3": ColwiseParallel(output_layouts=Replicate())}
    return parallelize_module(model, mesh, plan)


def tokens(x: torch.Tensor) -> torch.Tensor:
    """The same on all ranks."""
    return torch.arange(2 * 2 * len(x)).reshape(2, -1) % 16


def of_layers(layers: int, sequence: bool = False) -> Callable[[Any], Program]:
    def make(mesh: Any) -> Program:
        model = transformer(mesh, layers, sequence)
        return lambda x: model(tokens(x)) * x.sum()

    return make


def prepared(mesh: Any) -> Program:
    """Inputs and results of a module are laid out anew."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    plan = {
        "": PrepareModuleInput(input_layouts=Shard(0), desired_input_layouts=Replicate(), use_local_output=True),
        "0": ColwiseParallel(),
        "2": RowwiseParallel(use_local_output=False),
    }
    model = parallelize_module(model, mesh, plan)
    return parallelize_module(
        model, mesh, PrepareModuleOutput(output_layouts=Replicate(), desired_output_layouts=Shard(0))
    )


def step(mesh: Any) -> Program:
    """A training step as a whole."""
    model = transformer(mesh, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def f(x: torch.Tensor) -> Any:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens(x)).flatten(0, 1), tokens(x).flatten())
        loss.backward()
        optimizer.step()
        return loss.detach(), model[3].weight.grad.full_tensor(), model[0].weight.full_tensor().detach()

    return f


def dropped(mesh: Any) -> Program:
    """What ranks drop, and the state of their generators afterwards."""

    def f(x: torch.Tensor) -> Any:
        rows = F.dropout(DTensor.from_local(x, mesh, [Shard(0)]), 0.5) * 2
        noise = torch.rand_like(rows) + torch.empty_like(rows).normal_()
        return (rows + noise).redistribute(placements=[Replicate()]).to_local(), torch.rand(1)

    return f


def lost_in_parts(mesh: Any) -> Program:
    """Contexts that the program enters itself, for a loss and its gradients."""
    torch.manual_seed(0)
    model = parallelize_module(nn.Sequential(nn.Linear(3, 8)), mesh, {"0": ColwiseParallel(use_local_output=False)})

    def f(x: torch.Tensor) -> Any:
        rows = torch.arange(3.0 * len(x)).view(-1, 3) / len(x)
        with loss_parallel():
            loss = F.cross_entropy(model(rows), torch.arange(len(x)))
            (gradient,) = torch.autograd.grad(loss, [model[0].weight])
        with implicit_replication():
            return gradient * torch.ones(3), loss.detach()

    return f


#: the programs that are one graph
WHOLE: dict[str, Callable[[Any], Program]] = {
    "redistributed": redistributed,
    "made_inside": made_inside,
    "dropped": dropped,
    "lost_in_parts": lost_in_parts,
    "prepared": prepared,
    "sequence_parallel": of_layers(1, sequence=True),
    "step": step,
}


def _shown(made: Any) -> Any:
    if isinstance(made, tuple):
        return tuple(map(_shown, made))
    return made.full_tensor() if isinstance(made, DTensor) else made


def _run(program: Program, x: torch.Tensor) -> list[torch.Tensor]:
    """What a call gives, with the gradients."""
    x = x.clone().requires_grad_()
    torch.manual_seed(len(x) + dist.get_rank())
    made = _shown(program(x))
    made = made if isinstance(made, tuple) else (made,)
    followed = [tensor * torch.arange(tensor.numel()).view(tensor.shape) for tensor in made if tensor.requires_grad]
    if followed:
        sum(tensor.sum() for tensor in followed).backward()  # type: ignore[union-attr]
    return [*(tensor.detach().clone() for tensor in made), *([] if x.grad is None else [x.grad])]


def _compare(make: Callable[[Any], Program], sizes: tuple[int, ...], backend: str, fullgraph: bool) -> None:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    stator.reset()
    program, other = make(mesh), make(mesh)
    compiled = stator.compile(other, backend=backend, fullgraph=fullgraph)
    for rows in sizes:
        torch.manual_seed(10 * rows + dist.get_rank())
        x = torch.randn(rows, 3)
        torch.testing.assert_close(_run(compiled, x), _run(program, x), rtol=1e-4, atol=1e-5)


def distributed_tensors(name: str, *backends: str) -> None:
    """One graph, and what eager execution gives, at several sizes."""
    for backend in backends:
        _compare(WHOLE[name], (4, 4, 6), backend, True)
        # The first step finds no gradients; torch 2.13 fills a cache in the first trace that asks a mesh for its class.
        assert stator.stats().graphs <= (3 if name in ("step", "made_inside") else 2)


def broken(*backends: str) -> None:
    for backend in backends:
        _compare(behind_a_break, (4, 6, 8), backend, False)
        assert {record.code for record in stator.stats().breaks} == {"SB0301"}


def new_leaf(*backends: str) -> None:
    """A distributed tensor that is a new leaf is made by Python."""
    for backend in backends:
        _compare(leaf_inside, (4, 6, 8), backend, False)
        assert {record.code for record in stator.stats().breaks} == {"SB0101"}


def twelve_layers(backend: str) -> None:
    _compare(of_layers(12), (2,), backend, True)
    assert stator.stats().graphs == 1


def losses(*backends: str) -> None:
    """A model, and the loss of its sharded results, are compiled each; both are called under `loss_parallel`."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))

    def train(compile: Callable[..., Any]) -> list[torch.Tensor]:
        torch.manual_seed(0)
        plan = {"0": ColwiseParallel(), "2": ColwiseParallel(input_layouts=Shard(-1), use_local_output=False)}
        model = parallelize_module(nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 8)), mesh, plan)
        forward, loss_of = compile(model), compile(F.cross_entropy)
        found = []
        for rows in (4, 6, 8):
            with loss_parallel():
                loss = loss_of(forward(torch.arange(3.0 * rows).view(rows, 3) / rows), torch.arange(rows))
                loss.backward()
            found += [_shown(loss).detach(), *[_shown(parameter.grad).clone() for parameter in model.parameters()]]
        return found

    expected = train(lambda function: function)
    for backend in backends:
        stator.reset()
        found = train(lambda function: stator.compile(function, backend=backend, fullgraph=True))  # noqa: B023
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
