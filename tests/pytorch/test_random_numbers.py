"""Numbers that Python's random module draws, in graphs."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

import stator
from tests.models.test_random import outcomes, raising, restored, seeded, vary
from tests.pytorch.training import BACKENDS


def scaled(x: Any) -> Any:
    return x.sin() * random.uniform(0.5, 2) + random.random()


def shifted(x: Any) -> Any:
    return x.exp() + random.randint(1, 5), random.randrange(3)


def dropped(x: Any) -> Any:
    return x.sin() if random.random() < 0.5 else x.cos() * 2


def repeated(x: Any) -> Any:
    for _ in range(random.choice([1, 2, 3])):
        x = x * 2
    return x


def unused(x: Any) -> Any:
    random.random()
    return x * 2


PROGRAMS = [scaled, shifted, dropped, repeated, unused]


def trained(run: Any, calls: int) -> Any:
    random.seed(7)
    found = []
    for call in range(calls):
        x = torch.linspace(-1, 1, (3, 5, 4)[call % 3]).requires_grad_()
        out = run(x)
        tensors = [t for t in (out if isinstance(out, tuple) else (out,)) if isinstance(t, torch.Tensor)]
        sum(t.sum() for t in tensors).backward()  # type: ignore[union-attr]
        found.append((out, x.grad, random.getstate()[1][-1]))
    return found


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_drawn_as_in_eager_execution(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    torch.testing.assert_close(trained(compiled, 9), trained(program, 9))


def test_under_inductor() -> None:
    torch.testing.assert_close(
        trained(stator.compile(scaled, backend="inductor", fullgraph=True), 4), trained(scaled, 4)
    )


def test_a_graph_that_fails_has_drawn_nothing() -> None:
    def run(x: Any, index: Any) -> Any:
        return x[index] * random.random()

    compiled = stator.compile(run, backend="eager")
    random.seed(5)
    for _ in range(3):
        compiled(torch.ones(3), torch.tensor([1]))
    random.seed(5)
    with pytest.raises(IndexError):
        compiled(torch.ones(3), torch.tensor([7]))
    number = random.random()
    random.seed(5)
    assert number == random.random()


@pytest.mark.parametrize("program", [vary, raising, seeded, restored])
def test_numbers_from_a_state_that_is_another_in_each_call(program: Any) -> None:
    assert outcomes(stator.compile(program)) == outcomes(program)
    assert stator.stats().graph_breaks == 0


def test_no_two_calls_have_the_same_number() -> None:
    def draw() -> float:
        return random.random()

    compiled = stator.compile(draw, fullgraph=True)
    assert len({compiled() for _ in range(20)}) == 20
    assert stator.stats().frames == 1


def test_many_branches_are_traced_once_for_each_side() -> None:
    def draw() -> list[int]:
        return [i for i in range(8) if random.random() < 0.5]

    assert outcomes(stator.compile(draw), 60) == outcomes(draw, 60)
    assert {record.code for record in stator.stats().breaks} == {"SB0212"}
    assert stator.stats().frames <= 6
