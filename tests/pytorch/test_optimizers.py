"""Optimizers, schedulers, gradient clipping: a step leaves what eager leaves."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn, optim

import stator
from tests.pytorch.programs import assert_same
from tests.pytorch.training import BACKENDS

#: when compiled, torch's optimizers keep the step count a tensor, and compute corrections in its precision
RTOL = 1e-4
OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda p: optim.SGD(p, 0.1),
    "momentum": lambda p: optim.SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "foreach": lambda p: optim.SGD(p, 0.1, momentum=0.9, foreach=True),
    "adam": lambda p: optim.Adam(p, 0.01),
    "amsgrad": lambda p: optim.Adam(p, 0.01, amsgrad=True, weight_decay=0.1),
    "adam foreach": lambda p: optim.Adam(p, 0.01, foreach=True),
    "adamw": lambda p: optim.AdamW(p, 0.01),
    "adamw capturable": lambda p: optim.AdamW(p, torch.tensor(0.01), foreach=False),
    "rmsprop": lambda p: optim.RMSprop(p, 0.01, momentum=0.5, centered=True),
    "adagrad": lambda p: optim.Adagrad(p, 0.1),
    "adadelta": lambda p: optim.Adadelta(p),
    "adamax": lambda p: optim.Adamax(p),
    "nadam": lambda p: optim.NAdam(p),
    "radam": lambda p: optim.RAdam(p),
    "asgd": lambda p: optim.ASGD(p),
    "rprop": lambda p: optim.Rprop(p),
    "groups": lambda p: optim.AdamW([{"params": p[:2], "lr": 0.1}, {"params": p[2:], "weight_decay": 0.0}]),
}


def model() -> Any:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def decaying(by: float) -> Any:
    return lambda optimizer: optim.lr_scheduler.ExponentialLR(optimizer, by)


def train(make: Any, wrap: Any, steps: int = 4, schedule: Any = decaying(1.0)) -> Any:
    """What a few steps leave behind; `wrap` compiles the step of the optimizer, whose numbers follow a schedule."""
    net = model()
    optimizer = make(list(net.parameters()))
    scheduler = schedule(optimizer)
    step = wrap(optimizer.step)
    trail = []
    for i in range(steps):
        x = torch.randn(5, 4, generator=torch.Generator().manual_seed(i))
        net(x).square().mean().backward()
        step()
        scheduler.step()
        optimizer.zero_grad()
        trail.append(copy.deepcopy([p.detach() for p in net.parameters()]))
    return trail, optimizer.state_dict()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_step(name: str) -> None:
    expected = train(OPTIMIZERS[name], lambda step: step)
    stator.reset()
    got = train(OPTIMIZERS[name], lambda step: stator.compile(step, backend="eager"))
    assert_same(got, expected, name, RTOL)
    print(name, stator.stats().graphs, stator.stats().recompiles, stator.stats().breaks)


SCHEDULED = ("sgd", "momentum", "foreach", "adam", "adam foreach", "adamw", "rmsprop", "groups")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", SCHEDULED)
def test_a_rate_that_varies_is_a_symbol(name: str, backend: str) -> None:
    expected = train(OPTIMIZERS[name], lambda step: step, 6, decaying(0.9))
    stator.reset()
    got = train(OPTIMIZERS[name], lambda step: stator.compile(step, backend=backend), 6, decaying(0.9))
    assert_same(got, expected, name, RTOL)
    assert stator.stats().breaks == () and stator.stats().graphs <= 3


def test_numbers_that_a_backend_cannot_take_as_symbols() -> None:
    # The first symbol that it refuses ends its work: the trace is made again.
    compiled = stator.compile(lambda x, n: torch._foreach_pow([x], n)[0], backend="aot_eager")
    for n in (1.5, 2.5, 3.5, 4.5):
        x = torch.rand(3)
        assert_same(compiled(x, n), x**n, str(n), RTOL)


def loop(wrap: Any, *, clip: bool = False, schedule: bool = False, closure: bool = False) -> Any:
    net = model()
    optimizer = optim.AdamW(net.parameters(), 0.01)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 2, 0.5) if schedule else None

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(net.parameters(), 0.1)
        optimizer.step()
        if scheduler is not None:
            scheduler.step()
        return loss.detach()

    run = wrap(step)
    losses = []
    for i in range(5):
        generator = torch.Generator().manual_seed(i)
        x, y = torch.randn(6, 4, generator=generator), torch.randint(0, 2, (6,), generator=generator)
        losses.append(run(x, y))
    return losses, [p.detach() for p in net.parameters()], optimizer.state_dict()


@pytest.mark.parametrize("options", [{}, {"clip": True}, {"schedule": True}])
def test_training_step(options: Any) -> None:
    expected = loop(lambda f: f, **options)
    stator.reset()
    got = loop(lambda f: stator.compile(f, backend="eager"), **options)
    assert_same(got, expected, str(options), RTOL)
    stats = stator.stats()
    print(options, stats.graphs, stats.recompiles, stats.breaks)


FUSED: dict[str, Any] = {
    "adamw": lambda p: optim.AdamW(p, 0.01, fused=True),
    "adam": lambda p: optim.Adam(p, 0.01, fused=True),
    "amsgrad": lambda p: optim.AdamW(p, 0.01, fused=True, amsgrad=True),
    "adagrad": lambda p: optim.Adagrad(p, 0.01, fused=True),
    "sgd": lambda p: optim.SGD(p, 0.01, fused=True),
    "momentum": lambda p: optim.SGD(p, 0.01, fused=True, momentum=0.9),
    "adamax": lambda p: optim.Adamax(p, 0.01, foreach=True),
    "rate": lambda p: optim.Adam(p, torch.tensor(0.01), fused=True),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", FUSED)
def test_operators_that_write_lists_of_tensors(name: str, backend: str) -> None:
    expected = train(FUSED[name], lambda step: step, 3)
    stator.reset()
    got = train(FUSED[name], lambda step: stator.compile(step, backend=backend, fullgraph=True), 3)
    assert_same(got, expected, name, RTOL)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", ["adamw", "amsgrad", "adagrad", "momentum"])
def test_a_rate_that_varies_is_a_tensor_to_operators_that_take_none(name: str, backend: str) -> None:
    expected = train(FUSED[name], lambda step: step, 6, decaying(0.9))
    stator.reset()
    got = train(FUSED[name], lambda step: stator.compile(step, backend=backend), 6, decaying(0.9))
    assert_same(got, expected, name, RTOL)
    assert not any("lr" in record.reason for record in stator.stats().recompile_log)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("name", ["adamw", "amsgrad", "momentum"])
def test_a_momentum_that_varies_is_a_tensor_to_operators_that_take_none(name: str, backend: str) -> None:
    def schedule(optimizer: Any) -> Any:
        return optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=8)

    expected = train(FUSED[name], lambda step: step, 8, schedule)
    stator.reset()
    got = train(FUSED[name], lambda step: stator.compile(step, backend=backend), 8, schedule)
    assert_same(got, expected, name, 0.0 if backend == "eager" else RTOL)
    assert stator.stats().graphs <= 3 and not stator.stats().breaks


def test_operators_that_write_lists_of_tensors_with_inductor() -> None:
    expected = train(FUSED["adamw"], lambda step: step, 3)
    stator.reset()
    got = train(FUSED["adamw"], lambda step: stator.compile(step, backend="inductor"), 3)
    assert_same(got, expected, "adamw", 1e-4)
    assert not any("fused" in record.reason for record in stator.stats().breaks)


def averaged(wrap: Any, average: Any, buffers: bool) -> Any:
    net = model()
    weights = optim.swa_utils.AveragedModel(net, multi_avg_fn=average, use_buffers=buffers)
    optimizer = optim.SGD(net.parameters(), 0.1)

    def step(x: Any) -> None:
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        weights.update_parameters(net)

    run = wrap(step)
    for i in range(3):
        run(torch.randn(5, 4, generator=torch.Generator().manual_seed(i)))
    return [t.detach() for t in (*weights.parameters(), *weights.buffers(), *net.parameters())]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("average", [None, optim.swa_utils.get_ema_multi_avg_fn(0.9)])
@pytest.mark.parametrize("buffers", [False, True])
def test_averaged_models(backend: str, average: Any, buffers: bool) -> None:
    # What was detached before a graph break is an input beside the parameter in whose memory it lies.
    expected = averaged(lambda step: step, average, buffers)
    got = averaged(lambda step: stator.compile(step, backend=backend), average, buffers)
    assert_same(got, expected, "averaged", RTOL)


class Trainer:
    """An optimizer that a scheduler watches by a weak reference, beside what the step changes."""

    def __init__(self) -> None:
        self.net = model()
        self.optimizer = optim.SGD(self.net.parameters(), lr=0.1)
        self.scheduler = optim.lr_scheduler.StepLR(self.optimizer, 2)
        self.steps, self.last, self.history = 0, torch.zeros(()), list[Any]()

    def step(self, x: Any) -> Any:
        loss = self.net(x).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.steps += 1
        self.last = loss.detach()
        self.history.append(self.steps)
        self.optimizer.step()
        self.scheduler.step()
        return self.last * 2


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_the_step_changes_before_the_optimizer(backend: str) -> None:
    eager, traced = Trainer(), Trainer()
    stator.reset()
    step = stator.compile(traced.step, backend=backend, fullgraph=True)
    for seed in range(3):
        x = torch.randn(4 + seed, 4, generator=torch.Generator().manual_seed(seed))
        torch.testing.assert_close(step(x), eager.step(x))
    assert (traced.steps, traced.history) == (eager.steps, eager.history)
    torch.testing.assert_close(traced.last, eager.last)
    torch.testing.assert_close([*traced.net.parameters()], [*eager.net.parameters()])
