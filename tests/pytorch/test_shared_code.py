"""Modules are called through one code object, and so are functions under one decorator: each is counted for itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import stator

MODULES: list[Callable[[], nn.Module]] = [
    lambda: nn.Linear(2, 2),
    nn.ReLU,
    lambda: nn.LayerNorm(2),
    nn.GELU,
    nn.Sigmoid,
    nn.Tanh,
    nn.SiLU,
    lambda: nn.Softmax(-1),
    nn.ELU,
]


def program_of(parts: list[Any]) -> Callable[[torch.Tensor], list[Any]]:
    """Calls each of the parts, which are compiled one by one."""

    @stator.disable(recursive=False)
    def each(x: torch.Tensor) -> list[Any]:
        results = []
        for part in parts:
            results.append(part(x))  # noqa: PERF401 (a comprehension is a function that would be compiled)
        return results

    return each


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_modules_do_not_use_up_each_others_limit(backend: str) -> None:
    stator.reset()
    each = program_of([make() for make in MODULES])
    compiled = stator.compile(lambda x: each(x), backend=backend)
    for n in (3, 3, 4, 5):
        x = torch.ones(n, 2, requires_grad=True)
        found = compiled(x)
        assert all(map(torch.equal, found, each(x)))
        sum(y.sum() for y in found).backward()
    stats = stator.stats()
    assert {record.code for record in stats.breaks} == {"SB0302"}
    # a graph for the first number of rows, and one for all others
    assert stats.graphs == 2 * len(MODULES)
    assert all("was a" not in record.reason for record in stats.recompile_log)


def test_decorated_functions_do_not_use_up_each_others_limit() -> None:
    def scaled(n: int) -> Any:
        namespace: dict[str, Any] = {}
        exec(f"def scaled_by_{n}(x):\n    return x * {n}\n", namespace)
        return torch.no_grad()(namespace[f"scaled_by_{n}"])

    stator.reset()
    each = program_of([scaled(n) for n in range(12)])
    compiled = stator.compile(lambda x: each(x), backend="eager")
    for _ in range(3):
        assert [y.sum().item() for y in compiled(torch.ones(2))] == [2.0 * n for n in range(12)]
    assert stator.stats().graphs == 12 and not stator.stats().recompile_log


class Counting(nn.Module):
    """Depends on a number that is another in each call, and that nothing can be said of in general."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * len(str(3**self.calls))


def test_a_module_at_its_limit_is_left_alone() -> None:
    stator.reset()
    each = program_of([Counting(), nn.Linear(2, 2)])
    compiled = stator.compile(lambda x: each(x), backend="eager")
    for _ in range(15):
        compiled(torch.ones(3, 2))
    stats = stator.stats()
    (told,) = [record for record in stats.breaks if record.code == "SB0501"]
    assert told.reason.startswith("Counting.forward was compiled 8 times")
    stator.reset()
    relu = program_of([Counting(), nn.ReLU()])
    compiled = stator.compile(lambda x: relu(x), backend="eager")
    for n in range(15):
        _, found = compiled(torch.full((3, 2), n - 7.0))
        assert torch.equal(found, torch.full((3, 2), max(0.0, n - 7.0)))
    assert stator.stats().cache_hits > 14
