"""Tensors made of numbers that vary: `torch.tensor([step])` is computed of the symbol, and not once for each step."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator
from tests.pytorch.programs import assert_same
from tests.pytorch.training import BACKENDS

PROGRAMS: dict[str, Callable[[torch.Tensor, int], Any]] = {
    "alone": lambda x, n: (x + torch.tensor(n), torch.tensor(n)),
    "with a type": lambda x, n: x * torch.tensor([n], dtype=torch.int64, device=x.device).expand(x.shape[0], 1),
    "with floats": lambda x, n: (torch.tensor([n, 2.0 * n]), torch.tensor([n / 3, 0.5]) * x[0, 0]),
    "as_tensor": lambda x, n: x + torch.as_tensor([n]),
    "nested": lambda x, n: x + torch.tensor([[n, 1], [2, n + 1]], dtype=torch.float32).sum(),
    "with a size": lambda x, n: x + torch.tensor([n, x.shape[0], 3]).sum(),
    "an index": lambda x, n: x[torch.tensor([n % 2, 0])],
    "of what is in a tensor": lambda x, n: torch.tensor([x[0, 0].item(), n]),
}


@pytest.mark.parametrize(("name", "backend"), [*itertools.product(PROGRAMS, BACKENDS), ("with floats", "inductor")])
def test_one_graph_for_all_numbers(name: str, backend: str) -> None:
    program = PROGRAMS[name]
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for n in (3, 7, 11, 1, 0, 20):
        left = []
        for run in (compiled, program):
            x = torch.arange(12.0).reshape(4, 3).sin().requires_grad_()
            result = run(x, n)
            last = result[-1] if isinstance(result, tuple) else result
            if last.requires_grad:
                last.sum().backward()
            left.append((result, x.grad))
        assert_same(*left, f"{name}, {n}")
    assert stator.stats().graphs <= 2


def test_booleans_are_branches() -> None:
    def program(x: torch.Tensor, n: int) -> torch.Tensor:
        return x * torch.tensor([bool(n), True, False])

    compiled = stator.compile(program)
    for n in (3, 7, 0, 5):
        assert_same(compiled(torch.ones(3), n), program(torch.ones(3), n), str(n))
