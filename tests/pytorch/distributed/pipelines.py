"""Training in stages (`torch.distributed.pipelining`), of which each rank has one or two, compiled or not."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed import pipelining

WIDTH, PARTS = 8, 4
#: the schedules, and which stages a rank of two has
SCHEDULES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "ScheduleGPipe": ((0,), (1,)),
    "Schedule1F1B": ((0,), (1,)),
    "ScheduleInterleaved1F1B": ((0, 2), (1, 3)),
    "ScheduleInterleavedZeroBubble": ((0, 2), (1, 3)),
    "ScheduleZBVZeroBubble": ((0, 3), (1, 2)),
}


class Stage(nn.Module):
    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.inner, self.outer = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Any) -> Any:
        return x + self.outer(F.silu(self.inner(x)))


def train(name: str, compiled: Callable[[Any], Any], steps: int = 2) -> list[torch.Tensor]:
    """The losses of this rank, and the gradients of its parameters."""
    places = SCHEDULES[name]
    own, count = places[dist.get_rank()], sum(map(len, places))
    modules = [Stage(number) for number in own]
    stages: list[Any] = [
        pipelining.PipelineStage(compiled(module), number, count, torch.device("cpu"))
        for number, module in zip(own, modules, strict=True)
    ]
    made = getattr(pipelining, name)
    schedule = made(stages if count > len(places) else stages[0], PARTS, loss_fn=F.mse_loss)
    optimizer = torch.optim.SGD([p for module in modules for p in module.parameters()], lr=0.1)
    losses: list[torch.Tensor] = []
    for step in range(steps):
        torch.manual_seed(step)
        x, target = torch.randn(2 * PARTS, WIDTH), torch.randn(2 * PARTS, WIDTH)
        optimizer.zero_grad()
        last = {"target": target, "losses": losses} if count - 1 in own else {}
        schedule.step(*((x,) if 0 in own else ()), **last)
        optimizer.step()
    gradients = map(operator.attrgetter("grad"), (p for module in modules for p in module.parameters()))
    return [*map(torch.Tensor.detach, losses), *gradients]
