"""Programs that train: a step with forward, gradients and update is one graph."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.training import BACKENDS, rows, trains_alike

backends = pytest.mark.parametrize("backend", BACKENDS)


def network() -> Any:
    return nn.Sequential(nn.Linear(3, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))


def training(make_optimizer: Any, *, set_to_none: bool = True, clip: Any = None, closure: bool = False) -> Any:
    def make() -> Any:
        net = network()
        leaves = list(net.parameters())
        optimizer = make_optimizer(leaves)

        def step(x: Any) -> Any:
            optimizer.zero_grad(set_to_none=set_to_none)
            loss = nn.functional.cross_entropy(net(x), torch.zeros(len(x), dtype=torch.long))
            loss.backward()
            if clip is not None:
                clip(leaves)
            optimizer.step()
            return loss

        def by_closure(x: Any) -> Any:
            def compute() -> Any:
                optimizer.zero_grad()
                loss = net(x).square().mean()
                loss.backward()
                return loss

            return optimizer.step(compute).detach()

        return by_closure if closure else step, [*leaves, *net.buffers()]

    return make


STEPS: dict[str, Any] = {
    "sgd": training(lambda p: torch.optim.SGD(p, 0.1)),
    "momentum": training(lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), set_to_none=False),
    "adam": training(lambda p: torch.optim.Adam(p, 0.01, foreach=False)),
    "adamw": training(lambda p: torch.optim.AdamW(p, 0.01, foreach=True)),
    "clipped": training(lambda p: torch.optim.SGD(p, 0.1), clip=lambda p: nn.utils.clip_grad_norm_(p, 0.1)),
    "clipped values": training(lambda p: torch.optim.SGD(p, 0.1), clip=lambda p: nn.utils.clip_grad_value_(p, 0.1)),
    "closure": training(lambda p: torch.optim.SGD(p, 0.1), closure=True),
}


@backends
@pytest.mark.parametrize("name", STEPS)
def test_a_step_of_training_is_one_graph(name: str, backend: str) -> None:
    stats = trains_alike(STEPS[name], backend=backend, sizes=(3, 3, 3, 5, 5, 4), tolerance=1e-4)
    assert stats.graphs <= 3  # state is made in the first call, sizes vary from the fourth


def test_a_step_of_training_under_inductor() -> None:
    trains_alike(STEPS["adamw"], backend="inductor", sizes=(3, 3, 5), tolerance=1e-4)


def adversaries() -> Any:
    first, second = network(), network()
    ours, theirs = (torch.optim.SGD(net.parameters(), 0.1) for net in (first, second))
    last = nn.Linear(2, 3)

    def step(x: Any) -> Any:
        fake = last(first(x))
        theirs.zero_grad()
        real_loss = nn.functional.softplus(-second(x)).mean() + nn.functional.softplus(second(fake.detach())).mean()
        real_loss.backward()
        theirs.step()
        ours.zero_grad()
        fake_loss = nn.functional.softplus(-second(fake)).mean()
        fake_loss.backward()
        ours.step()
        return real_loss, fake_loss

    return step, [*first.parameters(), *second.parameters(), *last.parameters()]


def recomputed() -> Any:
    net = network()

    def step(x: Any) -> Any:
        h = torch.utils.checkpoint.checkpoint(net[0], x, use_reentrant=False)
        loss = net[2:](h).square().sum()
        loss.backward()
        return loss

    return step, list(net.parameters())


def dropped() -> Any:
    net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))

    def step(x: Any) -> Any:
        loss = net(x).square().sum()
        loss.backward()
        return loss

    return step, list(net.parameters())


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * x * 2


def with_function() -> Any:
    net = network()

    def step(x: Any) -> Any:
        loss = Doubled.apply(net(x)).sum()
        loss.backward()
        return loss

    return step, list(net.parameters())


def tied() -> Any:
    net = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    net[1].weight = net[0].weight

    def step(x: Any) -> Any:
        loss = net[1](net[0](x).tanh()).sum()
        loss.backward()
        return loss

    return step, list(net.parameters())


def partly_frozen() -> Any:
    net = network()
    net[0].requires_grad_(False)

    def step(x: Any) -> Any:
        net(x).sin().sum().backward()
        return net[0].weight.grad is None

    return step, list(net.parameters())


def with_autocast() -> Any:
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))

    def step(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = net(x).float().square().mean()
        loss.backward()
        return loss.detach()

    return step, list(net.parameters())


def complex_numbers() -> Any:
    w = torch.randn(3, 2, dtype=torch.complex64, requires_grad=True)

    def step(x: Any) -> Any:
        loss = (x.to(torch.complex64) @ w).abs().sum()
        loss.backward()
        return loss.detach()

    return step, [w]


def inside_a_method() -> Any:
    class Trainer:
        def __init__(self) -> None:
            self.net = network()
            self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1)
            self.losses: list[Any] = []

        def step(self, x: Any) -> Any:
            loss = self.net(x).square().mean()
            self.backward(loss)
            self.losses.append(loss.detach())
            return len(self.losses)

        def backward(self, loss: Any) -> None:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    trainer = Trainer()
    return trainer.step, list(trainer.net.parameters())


def penalised() -> Any:
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))

    def step(x: Any) -> Any:
        loss = net(x).square().mean()
        grads = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
        (loss + sum(g.square().sum() for g in grads)).backward()
        return loss.detach()

    return step, list(net.parameters())


@backends
@pytest.mark.parametrize(
    "make",
    [
        *(adversaries, recomputed, dropped, with_function, tied, partly_frozen, with_autocast, complex_numbers),
        *(inside_a_method, penalised),
    ],
)
def test_programs_that_train(make: Any, backend: str) -> None:
    trains_alike(make, seeded, backend=backend, tolerance=1e-4)


def seeded(n: int) -> Any:
    torch.manual_seed(n)
    return rows(n)


@pytest.mark.parametrize("breaks", [False, True])
def test_weights_that_autocast_has_cast_are_kept_over_a_trace(breaks: bool) -> None:
    # The gradient of a weight that is cast once is summed in bfloat16, and the step before the break is not seen by
    # what is behind it, in ordinary Python as well. Each trace begins with the casts of what ran before it.
    def train(wrap: Any) -> list[Any]:
        torch.manual_seed(0)
        cell, x = nn.Linear(8, 8), torch.randn(6, 8)
        optimizer = torch.optim.SGD(cell.parameters(), lr=1.0)

        def step(x: Any, flag: Any) -> Any:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                hidden = torch.tanh(cell(x))
                if breaks and flag > 0:
                    hidden = hidden * 2
                hidden = torch.tanh(cell(hidden))
                hidden.float().square().mean().backward()
                optimizer.step()
                if breaks and flag > 0:
                    x = x * 1
                loss = cell(x).float().square().mean()
            return loss

        run, found = wrap(step), []
        for i in range(3):
            cell.zero_grad()
            found += [run(x + i, torch.ones(())).detach(), cell.weight.grad.clone(), cell.bias.grad.clone()]
        return found

    expected = train(lambda step: step)
    for got, wanted in zip(train(lambda step: stator.compile(step, backend="eager")), expected, strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)
    assert bool(stator.stats().breaks) is breaks
