"""Batch norms whose momentum varies: `BatchNorm1d(8, momentum=None)` averages over all batches that it has seen."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.each_backend import each_backend

NETS: dict[str, Callable[[], nn.Module]] = {
    "flat": lambda: nn.Sequential(nn.Flatten(), nn.LazyLinear(4), nn.BatchNorm1d(4, momentum=None), nn.Linear(4, 1)),
    "images": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, momentum=None), nn.Conv2d(4, 1, 3)),
    "plain": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, affine=False, momentum=None)),
    "without": lambda: nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, track_running_stats=False, momentum=None), nn.Conv2d(4, 1, 3)
    ),
    "channels last": lambda: nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, momentum=None)).to(
        memory_format=torch.channels_last
    ),
}


def step(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    loss = net(x).square().mean()
    loss.backward()
    return loss.detach()


def autocast(net: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return step(net, x)


def assert_alike(one: nn.Module, other: nn.Module, exact: bool) -> None:
    """Same parameters, gradients and buffers."""
    for (name, x), y in zip(one.state_dict(keep_vars=True).items(), other.state_dict(keep_vars=True).values()):
        for a, b in ((x, y), (x.grad, y.grad)) if x.is_leaf else ((x, y),):
            torch.testing.assert_close(a, b, msg=name, **({"rtol": 0, "atol": 0} if exact else {}))


@pytest.mark.parametrize(("name", "backend"), each_backend(NETS, ["images"]))
def test_a_step_with_cumulative_averages_is_captured(name: str, backend: str) -> None:
    stator.reset()
    net = NETS[name]()
    net(torch.rand(2, 3, 6, 6))
    expected = copy.deepcopy(net)
    compiled = stator.compile(step, backend=backend)
    for rows in (4, 3, 5, 2):
        x = torch.rand(rows, 3, 6, 6)
        torch.testing.assert_close(compiled(net, x), step(expected, x))
        assert_alike(net, expected, backend != "inductor")
    assert stator.stats().breaks == ()
    assert stator.stats().graphs == 2
    net.eval(), expected.eval()
    assert torch.allclose(compiled(net, x), step(expected, x))
    assert_alike(net, expected, backend != "inductor")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_under_autocast(backend: str) -> None:
    stator.reset()
    net = NETS["images"]()
    expected = copy.deepcopy(net)
    compiled = stator.compile(autocast, backend=backend)
    for rows in (4, 3, 5):
        x = torch.rand(rows, 3, 6, 6)
        assert torch.equal(compiled(net, x), autocast(expected, x))
        assert_alike(net, expected, True)
    assert stator.stats().breaks == ()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("training", [True, False])
def test_a_momentum_that_varies_is_no_new_graph(backend: str, training: bool) -> None:
    def normalized(x: torch.Tensor, mean: Any, variance: Any, momentum: float) -> torch.Tensor:
        return nn.functional.batch_norm(x, mean, variance, None, None, training, momentum) * 2

    stator.reset()
    compiled = stator.compile(normalized, backend=backend)
    for momentum in (0.5, 0.25, 0.1, 0.7, 0.0):
        x = torch.rand(3, 4, requires_grad=True)
        buffers = torch.rand(4), torch.rand(4)
        expected = [each.clone() for each in buffers]
        found, right = compiled(x, *buffers, momentum), normalized(x, *expected, momentum)
        assert torch.equal(found, right)
        assert torch.equal(torch.stack(buffers), torch.stack(expected))
        assert torch.equal(*[torch.autograd.grad(each.square().sum(), x)[0] for each in (found, right)])
    assert stator.stats().graphs == 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_value_for_each_channel_is_the_error_of_eager(backend: str) -> None:
    stator.reset()
    norm = nn.BatchNorm1d(3, momentum=None)
    compiled = stator.compile(norm, backend=backend)
    compiled(torch.rand(4, 3))
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training"):
        compiled(torch.rand(1, 3))
    assert norm.num_batches_tracked == 2
