"""Norms of numbers in 16 bits with parameters of 32: what is kept for the backward pass is of the parameters' type."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import stator

NETS: dict[str, Callable[[], nn.Module]] = {
    "batch": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)),
    "layer": lambda: nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 2)),
    "group": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.GroupNorm(2, 4), nn.Conv2d(4, 4, 3)),
    "instance": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.InstanceNorm2d(4, affine=True)),
}


def step(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = net(x)
    loss = y.float().square().mean()
    loss.backward()
    return loss.detach()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", NETS)
def test_a_step_under_autocast_is_captured(name: str, backend: str, training: bool) -> None:
    stator.reset()
    expected = NETS[name]().train(training)
    net = copy.deepcopy(expected)
    compiled = stator.compile(step, backend=backend)
    for rows in (2, 3, 5):
        x = torch.rand(rows, 3, 8, 8)
        assert torch.equal(compiled(net, x), step(expected, x))
        for one, other in zip(net.parameters(), expected.parameters(), strict=True):
            assert torch.equal(one.grad, other.grad)  # type: ignore[arg-type]
    assert stator.stats().breaks == ()


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16, torch.float32])
def test_statistics_have_the_types_of_eager(kind: torch.dtype) -> None:
    def kinds(x: torch.Tensor, w: torch.Tensor) -> Any:
        made = (
            *torch.native_batch_norm(x, w, w, None, None, True, 0.1, 1e-5),
            *torch.native_layer_norm(x, [4], torch.ones(4), None, 1e-5),
            *torch.native_layer_norm(x, [4], None, None, 1e-5),
            *torch.native_group_norm(x, w, w, 2, 3, 16, 1, 1e-5),
        )
        return [tensor.dtype for tensor in made]

    args = torch.rand(2, 3, 4, 4, dtype=kind), torch.rand(3)
    stator.reset()
    assert stator.compile(kinds, backend="eager")(*args) == kinds(*args)
