"""Jagged tensors: the lengths of their rows are symbols from the first trace on, and backends are given the graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nested import narrow, nested_tensor, nested_tensor_from_jagged

import stator
from tests.pytorch.gradients import each_once
from tests.pytorch.old_torch import FIXED_ROWS
from tests.pytorch.training import BACKENDS

#: lengths of rows: of a batch, of others as large, of a larger batch, of a smaller one
LENGTHS = ((2, 3, 4), (3, 4, 5), (3, 5, 2, 7), (6, 2), (4, 4, 9))


def jagged(lengths: tuple[int, ...], width: int = 11) -> Any:
    return nested_tensor([torch.randn(n, width) for n in lengths], layout=torch.jagged, requires_grad=True)


def leaf(lengths: tuple[int, ...]) -> Any:
    """One that is no view."""
    return jagged(lengths).detach().clone().requires_grad_()


def plain(made: Any) -> list[Any]:
    if isinstance(made, tuple | list):
        return [part for item in made for part in plain(item)]
    if isinstance(made, torch.Tensor) and made.is_nested:
        return [made.values(), made.offsets()]
    return [made]


def runs_alike(
    program: Callable[..., Any],
    make: Callable[[tuple[int, ...]], tuple[Any, ...]],
    backend: Any,
    **options: Any,
) -> Any:
    compiled = stator.compile(program, backend=backend, fullgraph=True, **options)
    for lengths in LENGTHS:
        left = []
        for run in (program, compiled):
            torch.manual_seed(1)
            args = make(lengths)
            made = plain(run(*args))
            total = sum(t.sin().sum() for t in made if isinstance(t, torch.Tensor) and t.requires_grad)
            if isinstance(total, torch.Tensor):
                total.backward()
            left.append([*made, *(plain(arg.grad) for arg in args if arg.grad is not None)])
        for one, other in zip(plain(left[1]), plain(left[0]), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    return stator.stats()


LINEAR = nn.Linear(11, 4)
NORM = nn.LayerNorm(11)
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: x.sin() * 2,
    "layer": lambda x: LINEAR(NORM(x)).relu(),
    "with itself": lambda x: x * x + x,
    "values": lambda x: x.values().cos(),
    "reduced": lambda x: (x.detach().sum(1), x.detach().sum(-1), x.detach().mean(1)),
    "batch size": lambda x: x * x.size(0),
    "padded": lambda x: torch.nested.to_padded_tensor(x, 0.0),
    "softmax": lambda x: x.softmax(-1),
    "transposed": lambda x: x.transpose(1, 2).transpose(1, 2) * 2,
    "heads": lambda x: LINEAR(x).unflatten(-1, (2, 2)).transpose(1, 2).transpose(1, 2).flatten(-2),
    "made of it": lambda x: nested_tensor_from_jagged(x.values() * 2, x.offsets()) * x,
    "compared": lambda x: (x * 2, x.shape[1] == x.shape[1], (x * 2).shape[1] == x.shape[1]),
    "branches": lambda x: x * 2 if x.sin().shape == x.shape else x,
}


@pytest.mark.parametrize(("make", "backend"), each_once(jagged, leaf))
@pytest.mark.parametrize("name", PROGRAMS)
def test_few_graphs_for_all_lengths(name: str, backend: str, make: Any) -> None:
    stats = runs_alike(PROGRAMS[name], lambda lengths: (make(lengths),), backend)
    assert stats.graphs <= 3 or FIXED_ROWS  # of a batch, of other lengths, of other batches
    assert stats.graph_breaks == 0


@pytest.mark.parametrize("name", ["layer", "padded"])
def test_with_inductor(name: str) -> None:
    assert runs_alike(PROGRAMS[name], lambda lengths: (jagged(lengths),), "inductor").graphs <= (5 if FIXED_ROWS else 3)


@pytest.mark.parametrize("name", PROGRAMS)
def test_one_graph_if_all_are_dynamic(name: str) -> None:
    stats = runs_alike(PROGRAMS[name], lambda lengths: (jagged(lengths),), "aot_eager", dynamic=True)
    assert FIXED_ROWS or stats.graphs == 1 + (
        name == "made of it"
    )  # where a batch is as large as torch's stand-in for one


def test_the_backend_is_given_the_graph() -> None:
    given = []

    def backend(gm: Any, inputs: Any) -> Any:
        given.append(gm)
        return gm.forward

    stator.compile(lambda x: x.sin() * 2, backend=backend)(jagged((2, 3)))
    assert len(given) == 1 - FIXED_ROWS


def test_tensors_that_share_lengths() -> None:
    def make(lengths: tuple[int, ...]) -> tuple[Any, ...]:
        x = jagged(lengths)
        return x, (x.detach() * 2).requires_grad_()

    assert runs_alike(lambda x, y: x * y + y.sin(), make, "aot_eager").graphs <= (5 if FIXED_ROWS else 3)


@pytest.mark.parametrize("backend", BACKENDS)
def test_whether_they_share_lengths_is_guarded(backend: str) -> None:
    compiled = stator.compile(lambda x, y: x * 2 if x.shape == y.shape else x * 3, backend=backend)
    for alike in (True, False, True, False):
        x = jagged((2, 3))
        y = x * 2 if alike else jagged((2, 3))
        torch.testing.assert_close(compiled(x, y).values(), x.values() * (2 if alike else 3))


@pytest.mark.parametrize("backend", BACKENDS)
def test_tensors_of_other_lengths_do_not_fit(backend: str) -> None:
    compiled = stator.compile(lambda x, y: x * y, backend=backend)
    x = jagged((2, 3))
    compiled(x, x * 2)
    with pytest.raises(RuntimeError, match="cannot call binary pointwise function"):
        compiled(x, jagged((3, 2)))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("first", [True, False])
def test_whether_one_is_made_with_the_lengths_of_another_is_guarded(backend: str, first: bool) -> None:
    def program(x: Any, values: Any, offsets: Any) -> Any:
        made = nested_tensor_from_jagged(values, offsets)
        return made * 2 if made.shape == x.shape else made * 3

    compiled = stator.compile(program, backend=backend)
    for alike in (first, not first, first):
        x, values = jagged((2, 3)), torch.randn(5, 11)
        offsets = x.offsets() if alike else x.offsets().clone()
        torch.testing.assert_close(compiled(x, values, offsets).values(), values * (2 if alike else 3))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("first", [True, False])
def test_whether_two_are_made_with_the_same_lengths_is_guarded(backend: str, first: bool) -> None:
    def program(values: Any, offsets: Any, others: Any) -> Any:
        one, other = nested_tensor_from_jagged(values, offsets), nested_tensor_from_jagged(values, others)
        return one * 2 if one.shape == other.shape else other * 3

    compiled = stator.compile(program, backend=backend)
    for alike in (first, not first, first):
        values, offsets = torch.randn(5, 11), torch.tensor([0, 2, 5])
        others = offsets if alike else offsets.clone()
        torch.testing.assert_close(compiled(values, offsets, others).values(), values * (2 if alike else 3))


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_with_holes(backend: str) -> None:
    def make(lengths: tuple[int, ...]) -> tuple[Any, ...]:
        padded = torch.randn(len(lengths), max(lengths), 3)
        return (narrow(padded, 1, torch.zeros(len(lengths), dtype=torch.int64), torch.tensor(lengths), torch.jagged),)

    compiled = stator.compile(lambda x: x.sin() * 2, backend=backend)
    for lengths in LENGTHS:
        (x,) = make(lengths)
        for one, other in zip(compiled(x).unbind(), (x.sin() * 2).unbind(), strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("backend", BACKENDS)
def test_training(backend: str) -> None:
    def trained(run: Any, model: Any) -> list[Any]:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step, lengths in enumerate(LENGTHS):
            torch.manual_seed(step)
            loss = run(jagged(lengths).detach()).values().square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        return [p.detach() for p in model.parameters()]

    left = []
    for compiled in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(11, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 2))
        left.append(trained(stator.compile(model, backend=backend) if compiled else model, model))
    torch.testing.assert_close(left[1], left[0])
