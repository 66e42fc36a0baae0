"""Parameters whose `requires_grad` is switched between two backward passes, as agents do with their critics."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import stator


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_the_break_says_what_was_switched(backend: str) -> None:
    critics = [nn.Linear(3, 1) for _ in range(2)]
    critics[1].load_state_dict(critics[0].state_dict())
    actors = [nn.Parameter(torch.ones(3)) for _ in range(2)]

    def step_of(critic: nn.Linear, actor: nn.Parameter):
        def step(x: torch.Tensor) -> torch.Tensor:
            critic.requires_grad_(False)
            loss = critic(x * actor).mean()
            loss.backward()
            critic.requires_grad_(True)
            (critic(x).mean() + (actor * 2).sum()).backward()
            return loss.detach()

        return step

    stator.reset()
    plain, compiled = step_of(critics[0], actors[0]), stator.compile(step_of(critics[1], actors[1]), backend=backend)
    for size in (2, 3, 4):
        x = torch.randn(size, 3)
        torch.testing.assert_close(compiled(x), plain(x))
        for one, other in zip(
            [*critics[0].parameters(), actors[0]], [*critics[1].parameters(), actors[1]], strict=True
        ):
            torch.testing.assert_close(one.grad, other.grad)
    told = {record.reason for record in stator.stats().breaks if record.code == "SB0205"}
    assert told and all("`requires_grad` of `critic.bias` was switched before" in reason for reason in told), told
