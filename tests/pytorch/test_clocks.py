"""Clocks that compiled functions read: before the graph, after it, and never in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator

SLOW = 0.05
LOG: dict[str, Any] = {}


def slow(gm: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
    """A backend whose graphs take their time."""

    def run(*args: torch.Tensor) -> Any:
        time.sleep(SLOW)
        return gm(*args)

    return run


def around(x: torch.Tensor) -> Any:
    begun = time.perf_counter()
    y = x.sin() * 2
    return y, time.perf_counter() - begun


def kept(x: torch.Tensor) -> Any:
    begun = time.monotonic_ns()
    y = x.sin() * 2
    LOG["took"] = (time.monotonic_ns() - begun) * 1e-9
    return y, LOG["took"]


def told(x: torch.Tensor) -> Any:
    begun = time.time()
    y = x + 1
    print(f"took {time.time() - begun:.6f} s")
    return y, SLOW


def before(x: torch.Tensor) -> Any:
    first = time.perf_counter()
    second = time.perf_counter()
    return x + 1, SLOW + (second - first) * 1e-6


@pytest.mark.parametrize("function", [around, kept, told, before])
def test_one_graph(function: Any, capsys: pytest.CaptureFixture[str]) -> None:
    compiled = stator.compile(function, backend=slow, fullgraph=True)
    for n in (2, 3, 4):
        y, took = compiled(torch.ones(n))
        assert torch.equal(y, function(torch.ones(n))[0]) and SLOW <= took < 60
        said = capsys.readouterr().out
        assert function is not told or float(said.split()[1]) >= SLOW


def between(x: torch.Tensor) -> Any:
    begun = time.perf_counter()
    y = x.sin()
    middle = time.perf_counter()
    y = y.cos()
    return y, middle - begun, time.perf_counter() - middle


def compared(x: torch.Tensor) -> Any:
    begun = time.perf_counter()
    y = x.sin()
    return y, SLOW if time.perf_counter() - begun > 0 else 0.0, SLOW


@pytest.mark.parametrize("function", [between, compared])
def test_with_breaks(function: Any) -> None:
    compiled = stator.compile(function, backend=slow)
    for n in (2, 3, 4):
        y, first, second = compiled(torch.ones(n))
        assert torch.equal(y, function(torch.ones(n))[0]) and first >= SLOW and second >= SLOW


def test_gradients() -> None:
    x = torch.ones(3, requires_grad=True)
    y, took = stator.compile(around, backend="aot_eager", fullgraph=True)(x)
    y.sum().backward()
    assert took > 0 and torch.allclose(x.grad, 2 * torch.ones(3).cos())  # type: ignore[arg-type]


def test_a_reading_and_a_number_that_varies() -> None:
    def per_item(x: torch.Tensor, count: int) -> Any:
        begun = time.perf_counter()
        return x + 1, (time.perf_counter() - begun) / count, count / begun

    compiled = stator.compile(per_item, backend="eager")
    for count in (5, 5, 200, 7):
        y, took, *rest = compiled(torch.ones(2), count)
        assert 0 < took < 60 and rest[0] > 0
        assert torch.equal(y, torch.full((2,), 2.0))


def divisions(took: Any) -> Any:
    return took / 1000, took // 1000, took % 1000, took / 2.0, took * 1.0 // 7, took * 1.0 % 7, -1 * took // 7


def test_what_divides() -> None:
    def quotients(x: torch.Tensor) -> Any:
        begun = time.perf_counter_ns()
        y = x.sin() * 2
        took = time.perf_counter_ns() - begun
        return y, took, divisions(took)

    compiled = stator.compile(quotients, backend="eager", fullgraph=True)
    for n in (2, 3, 4):
        _, took, found = compiled(torch.ones(n))
        expected = divisions(took)
        assert found == expected
        assert [*map(type, found)] == [*map(type, expected)]


def test_a_division_that_may_fail() -> None:
    def rate(x: torch.Tensor, by: Any) -> Any:
        took = time.perf_counter_ns() * 0
        try:
            return x * 2, 1 / took, took / by
        except ZeroDivisionError:
            return x + 1, 0, 0

    def by_zero(x: torch.Tensor) -> Any:
        y = x + 1
        return y, time.perf_counter() / 0

    compiled = stator.compile(rate, backend="eager")
    for n in (2, 3):
        assert torch.equal(compiled(torch.ones(n), 1)[0], torch.full((n,), 2.0))
    (told,) = stator.stats().breaks
    assert told.code == "SB0115" and "with a divisor that is known when the graph has run" in told.reason
    with pytest.raises(ZeroDivisionError):
        stator.compile(by_zero, backend="eager")(torch.ones(3))


@pytest.mark.parametrize(
    "holds", [lambda took: took > 0, lambda took: 0 < took, lambda took: (took == 0) is False, bool]
)
def test_a_condition_on_the_time(holds: Any) -> None:
    def timed(x: torch.Tensor) -> Any:
        begun = time.perf_counter_ns()
        y = x.sin()
        done = holds(time.perf_counter_ns() - begun)
        return (y if done else x), done is True

    compiled = stator.compile(timed, backend="eager")
    for n in (2, 3, 4):
        y, done = compiled(torch.ones(n))
        assert torch.equal(y, torch.ones(n).sin()) and done
    told = stator.stats().breaks
    assert {(brk.code, brk.reason) for brk in told} == {
        ("SB0201", "a condition depends on the time, which is read when the graph has run")
    }
