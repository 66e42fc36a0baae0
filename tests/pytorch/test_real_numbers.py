"""Floats that vary are floats: of NaN and infinite numbers, and of rounding, symbols of real numbers know nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import stator
from tests.pytorch.old_torch import fails_on_old_torch

NUMBERS = (0.25, 0.5, 2.5, math.nan, -0.5, math.inf, 0.0, -math.inf, 1e308)
CONDITIONS: dict[str, Callable[[float], bool]] = {
    "u != u": lambda u: u != u,
    "not u == u": lambda u: not u == u,
    "u <= u": lambda u: u <= u,
    "u - u == 0": lambda u: u - u == 0,
    "u - u": lambda u: bool(u - u),
    "0 * u != 0": lambda u: 0 * u != 0,
    "abs(u) >= 0": lambda u: abs(u) >= 0,
    "u * u < 0": lambda u: u * u < 0,
    "sqrt(abs(u)) >= 0": lambda u: math.sqrt(abs(u)) >= 0,
    "u + 1 > u": lambda u: u + 1 > u,
    "u * 2 - u > u / 2": lambda u: u * 2 - u > u / 2,
    "u < inf": lambda u: u < math.inf,
    "u % 1 > 0.2": lambda u: u % 1 > 0.2,
    "u < 0 or u > 1": lambda u: not (u < 0 or u > 1),
    "1 / 3 * u == u / 3": lambda u: 1 / 3 * u == u / 3,
}


class Holder:
    u = 0.0


def from_item(x: torch.Tensor, u: torch.Tensor, condition: Callable[[float], bool]) -> Any:
    number = u.item()
    return x.sin() * number if condition(number) else x - 1


def from_argument(x: torch.Tensor, u: float, condition: Callable[[float], bool]) -> Any:
    return x.sin() * u if condition(u) else x - 1


def from_attribute(x: torch.Tensor, held: Holder, condition: Callable[[float], bool]) -> Any:
    return x.sin() * held.u if condition(held.u) else x - 1


def _holder(u: float) -> Holder:
    held = Holder()
    held.u = u
    return held


WAYS: list[tuple[Callable[..., Any], Callable[[float], Any]]] = [
    (from_item, lambda u: torch.tensor(u, dtype=torch.float64)),
    (from_argument, lambda u: u),
    (from_attribute, _holder),
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(("program", "made"), WAYS, ids=[program.__name__ for program, _ in WAYS])
@pytest.mark.parametrize("condition", CONDITIONS.values(), ids=list(CONDITIONS))
def test_conditions(
    condition: Callable[[float], bool], program: Callable[..., Any], made: Callable[[float], Any], backend: str
) -> None:
    compiled = stator.compile(program, backend=backend, recompile_limit=50)
    for number in NUMBERS:
        x, y = (torch.arange(3.0).requires_grad_() for _ in range(2))
        result, expected = compiled(x, made(number), condition), program(y, made(number), condition)
        assert torch.equal(result.nan_to_num(), expected.nan_to_num()), number
        result.sum().backward()
        expected.sum().backward()
        assert x.grad is not None and y.grad is not None
        assert torch.equal(x.grad.nan_to_num(), y.grad.nan_to_num()), number


def test_a_step_that_skips_what_is_not_finite() -> None:
    def step(x: torch.Tensor, skipped: list[int]) -> torch.Tensor | None:
        loss = x.pow(2).mean().item()
        if loss != loss or loss - loss != 0:
            skipped.append(1)
            return None
        return x * loss

    compiled, skipped = stator.compile(step, backend="eager"), list[int]()
    results = [compiled(torch.full((2,), number), skipped) for number in (1.0, 2.0, math.nan, math.inf)]
    assert [result is None for result in results] == [False, False, True, True] and len(skipped) == 2


def test_a_check_of_a_number_with_itself_is_assumed_and_made() -> None:
    """As any that ends in an error: one graph, and the error where the number is NaN."""

    def checked(x: torch.Tensor) -> torch.Tensor:
        loss = x.mean().item()
        if loss != loss:
            raise ValueError("loss is NaN")
        return x * loss

    for backend in ("eager", "aot_eager"):
        compiled = stator.compile(checked, backend=backend, fullgraph=True)
        for rows in (2, 3, 5):
            assert torch.equal(compiled(torch.ones(rows)), torch.ones(rows))
        with pytest.raises(ValueError, match="loss is NaN"):
            compiled(torch.full((3,), math.nan))


#: as under torch.compile
_CONSTANT_BOUNDS = fails_on_old_torch("Inductor makes constants of the bounds of clamp, without a guard")


@pytest.mark.parametrize("backend", ["eager", "aot_eager", pytest.param("inductor", marks=_CONSTANT_BOUNDS)])
def test_the_remainder_of_a_float(backend: str) -> None:
    def turned(x: torch.Tensor, phase: float, t: torch.Tensor) -> Any:
        u = t.item()
        return x * (phase % 1), x.clamp(max=phase % 1), x + u % 1, F.dropout(x, phase % 0.5, False)

    compiled = stator.compile(turned, backend=backend)
    for rows, phase in ((2, 0.25), (3, 1.5), (5, -2.75), (5, 7.0)):
        args = phase, torch.tensor(phase + 0.125)
        x, y = (torch.ones(rows, requires_grad=True) for _ in range(2))
        results, expected = compiled(x, *args), turned(y, *args)
        for one, other in zip(results, expected, strict=True):
            torch.testing.assert_close(one, other)
        sum(one.sum() for one in results).backward()
        sum(other.sum() for other in expected).backward()
        torch.testing.assert_close(x.grad, y.grad)
    assert stator.stats().graphs <= 4  # AOTAutograd has a rate of dropout as a constant


def test_a_condition_on_computed_floats_is_told_as_it_is_written() -> None:
    def warm(x: torch.Tensor, rate: float) -> torch.Tensor:
        return x * 2 if rate * 0.5 > 0.2 else x

    compiled = stator.compile(warm, backend="eager")
    for rate in (0.5, 0.6, 0.7, 0.3):
        assert torch.equal(compiled(torch.ones(2), rate), warm(torch.ones(2), rate))
    records = stator.stats().recompile_log
    assert records[-1].reason == "no longer: rate * 0.5 > 0.2 (`rate` is 0.3)" and stator.stats().frames == 3


def squared_often(x: torch.Tensor, u: float) -> torch.Tensor:
    for _ in range(40):
        u = u * u
    return x + 1 if u > 0.5 else x - 1


def summed_often(x: torch.Tensor, u: float) -> torch.Tensor:
    total = u
    for _ in range(300):
        total = total + u
    return x + 1 if total > 300 else x - 1


@pytest.mark.parametrize("program", [squared_often, summed_often])
def test_numbers_of_many_steps_are_no_long_formulas(program: Callable[..., Any]) -> None:
    """What is used twice would be written twice, 2 ** 40 times in all."""
    compiled = stator.compile(program, backend="eager")
    for u in (0.9, 0.99, 1.001, 1.0, 2.0, 0.5):
        assert torch.equal(compiled(torch.ones(2), u), program(torch.ones(2), u)), u


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_running_mean_has_one_graph_for_all_values(backend: str) -> None:
    def program(x: torch.Tensor, state: dict[str, Any]) -> torch.Tensor:
        state["count"] += 1
        state["mean"] += (x.sum().item() - state["mean"]) / state["count"]
        return x + 1

    stator.reset()
    compiled, states = stator.compile(program, backend=backend), [{"mean": 0.0, "count": 0} for _ in range(2)]
    for _ in range(6):
        x = torch.rand(3)
        assert torch.equal(compiled(x, states[0]), program(x, states[1]))
        assert states[0] == states[1]
    assert stator.stats().graphs == 2, stator.stats().recompile_log


def test_a_comparison_with_infinity_is_quiet(caplog: pytest.LogCaptureFixture) -> None:
    def program(x: torch.Tensor, best: float) -> bool:
        return x.mean().item() < best - 1e-4

    compiled = stator.compile(program, backend="eager")
    for best in (math.inf, 0.5, -math.inf, 2.0):
        for x in (torch.ones(2), torch.tensor([math.nan]), torch.tensor([-math.inf])):
            assert compiled(x, best) == program(x, best)
    assert not [record for record in caplog.records if record.name.startswith("torch")]
