"""A graph like an earlier one is not handed to the backend again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, lr_scheduler

import stator
from stator.backends import lookup_backend
from tests.pytorch.training import BACKENDS

ROW = torch.arange(4.0)


class Counting:
    """What a backend of this name makes, and how often it is asked."""

    def __init__(self, name: str = "aot_eager") -> None:
        self.backend = lookup_backend(name)
        self.calls = 0
        self.made: list[weakref.ref[Any]] = []

    def __call__(self, gm: torch.fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        self.calls += 1
        made = self.backend(gm, inputs)

        def run(*args: Any) -> Any:
            return made(*args)

        self.made.append(weakref.ref(run))
        return run


@pytest.fixture(autouse=True, scope="module")
def _imported() -> None:
    """What a backend imports when it is first used may be part of torch's state."""
    stator.compile(lambda x: x + 1, backend="aot_eager")(ROW)


def calls_for(function: Callable[..., Any], *calls: tuple[Any, ...], backend: str = "aot_eager") -> int:
    """How often the backend is asked in these calls, which give what they give in eager execution."""
    counting = Counting(backend)
    compiled = stator.compile(function, backend=counting)
    for args in calls:
        (got, *rest), (wanted, *others) = compiled(*args), function(*args)
        torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-6)
        assert rest == others
    return counting.calls


def by_word(x: torch.Tensor, word: str) -> tuple[torch.Tensor, str]:
    return x * 2 + 1, "yes" if word == "a" else "no"


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_ways_with_one_graph_are_compiled_once(backend: str) -> None:
    assert calls_for(by_word, (ROW, "a"), (ROW, "b"), (ROW, "c"), (ROW, "a"), backend=backend) == 1


def test_sizes_that_vary_are_compiled_once() -> None:
    calls = [(torch.ones(n), word) for word in ("a", "b") for n in (4, 5, 6, 7)]
    assert calls_for(by_word, *calls) == 2  # for four, and for any


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients(backend: str) -> None:
    counting = Counting(backend)
    layer, seen = nn.Linear(4, 3), list[str]()

    def loss(x: torch.Tensor, word: str) -> torch.Tensor:
        seen.append(word) if word == "a" else seen.append(word.upper())
        return layer(x).square().mean()

    compiled = stator.compile(loss, backend=counting)
    for rows in (2, 3, 5):
        for word in ("a", "b"):
            x = torch.randn(rows, 4)
            wanted = torch.autograd.grad(loss(x, word), [*layer.parameters()])
            torch.testing.assert_close(torch.autograd.grad(compiled(x, word), [*layer.parameters()]), wanted)
    assert counting.calls == 2
    assert seen == ["a", "a", "B", "B"] * 3


def test_layers_that_break_are_compiled_once() -> None:
    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x).relu()

    def both(x: torch.Tensor, one: nn.Module, other: nn.Module) -> torch.Tensor:
        x = one(x)
        torch._dynamo.graph_break()
        return other(x)

    counting, layers = Counting(), (Layer(), Layer())
    compiled = stator.compile(both, backend=counting)
    with torch.no_grad():
        torch.testing.assert_close(compiled(torch.ones(2, 4), *layers), both(torch.ones(2, 4), *layers))
    assert counting.calls == 1


def times(x: torch.Tensor, factor: Any) -> tuple[torch.Tensor]:
    return (x * factor,)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((ROW, 2), (ROW, True)),
        ((ROW, 0.0), (ROW, -0.0)),
        ((ROW, 2.0), (ROW.double(), 2.0)),
        ((ROW, 2.0), (ROW.clone().requires_grad_(), 2.0)),
        ((ROW, 2.0), (nn.Parameter(ROW), 2.0)),
        ((torch.ones(2, 3), 2.0), (torch.ones(3, 2).t(), 2.0)),
        ((ROW, 2.0), (ROW[None], 2.0)),
    ],
)
def test_what_differs_is_compiled(one: tuple[Any, ...], other: tuple[Any, ...]) -> None:
    assert calls_for(times, one, other) == 2


def test_the_state_of_torch_counts() -> None:
    counting, x = Counting(), ROW.clone().requires_grad_()
    compiled = stator.compile(by_word, backend=counting)
    assert compiled(x, "a")[0].requires_grad
    with torch.no_grad():
        assert not compiled(x, "b")[0].requires_grad
    assert counting.calls == 2
    with torch.autocast("cpu", dtype=torch.bfloat16):
        compiled(x, "b")
    assert counting.calls == 3


def test_what_is_known_of_sizes_counts() -> None:
    def halves(x: torch.Tensor, even: bool) -> tuple[torch.Tensor]:
        if even and x.size(0) % 2:
            raise ValueError
        return (x * x.size(0),)

    calls = [(torch.ones(3), False), (torch.ones(5), False), (torch.ones(6), True), (torch.ones(9), False)]
    assert calls_for(halves, *calls) == 2  # for three, and for any, even ones too
    stator.reset()
    calls = [(torch.ones(4), True), (torch.ones(6), True), (torch.ones(5), False), (torch.ones(6), False)]
    assert calls_for(halves, *calls) == 3  # for four, for even ones, and for any


def test_numbers_that_the_graph_finds() -> None:
    def found(x: torch.Tensor, word: str) -> tuple[torch.Tensor, str]:
        return x * x.max().item() + torch.nonzero(x).size(0), "yes" if word == "a" else "no"

    assert calls_for(found, (ROW, "a"), (ROW * 2, "b"), (torch.zeros(4), "b"), (ROW - 1, "c")) == 1


def test_what_is_asserted_of_numbers_that_the_graph_finds_counts() -> None:
    def found(x: torch.Tensor, word: str) -> tuple[torch.Tensor, str]:
        count = torch.nonzero(x).size(0)
        torch._check(count > (2 if word == "a" else 1))
        return torch.ones(count), "yes" if word == "a" else "no"

    assert calls_for(found, (ROW, "a"), (ROW, "b"), (torch.ones(4), "b"), (torch.ones(4), "a")) == 2


def test_inputs_that_share_memory_are_not_compared() -> None:
    def added(x: torch.Tensor, y: torch.Tensor, word: str) -> torch.Tensor:
        x.add_(1)
        return x + y

    counting = Counting()
    compiled = stator.compile(added, backend=counting)
    for word in ("a", "b"):
        memory, expected = torch.zeros(8), torch.zeros(8)
        got = compiled(memory[:4], memory[2:6], word + "!")
        assert torch.equal(got, added(expected[:4], expected[2:6], word))
        apart = torch.zeros(4)
        assert torch.equal(compiled(apart, torch.ones(4), word + "?"), torch.full((4,), 2.0))


def test_what_the_backend_has_made_goes_with_its_entries() -> None:
    counting = Counting()
    compiled = stator.compile(by_word, backend=counting)
    compiled(ROW, "a")
    compiled(ROW, "b")
    (made,) = counting.made
    assert made() is not None
    del compiled
    stator.reset()
    gc.collect()
    assert made() is None
    stator.compile(by_word, backend=counting)(ROW, "a")
    assert counting.calls == 2


SCHEDULERS: list[Callable[[SGD], Any]] = [
    lambda o: lr_scheduler.OneCycleLR(o, max_lr=0.2, total_steps=100),
    lambda o: lr_scheduler.StepLR(o, step_size=10),
    lambda o: lr_scheduler.LinearLR(o, total_iters=40),
    lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=3),
]


@pytest.mark.parametrize("make", SCHEDULERS)
def test_a_scheduler_stepped_inside_is_three_graphs_at_most(make: Callable[[SGD], Any]) -> None:
    def trained(compile: Callable[..., Any]) -> list[Any]:
        torch.manual_seed(0)
        model = nn.Linear(4, 4)
        optimizer = SGD(model.parameters(), lr=0.1)
        scheduler = make(optimizer)
        given = (1.0,) if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau) else ()

        def step(x: torch.Tensor) -> torch.Tensor:
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step(*given)
            return loss.detach()

        compiled = compile(step)
        losses = [compiled(torch.ones(2, 4)) for _ in range(60)]
        state = {name: value for name, value in scheduler.state_dict().items() if type(value) in (int, float, bool)}
        return [*losses, optimizer.param_groups[0]["lr"], state, *model.parameters()]

    counting = Counting()
    got = trained(lambda step: stator.compile(step, backend=counting))
    for mine, wanted in zip(got, trained(lambda step: step), strict=True):
        torch.testing.assert_close(mine, wanted) if isinstance(wanted, torch.Tensor) else None
        assert isinstance(wanted, torch.Tensor) or mine == wanted
    assert counting.calls <= 3
