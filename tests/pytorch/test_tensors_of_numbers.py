"""Tensors made of numbers that vary: `torch.tensor([step])` is computed of the symbol, and not once for each step."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
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


def weighted(x: Any, s: float, t: float) -> Any:
    return (x * torch.tensor([s, 1.0, s * t])).sum(), torch.tensor((t,), dtype=torch.float64), torch.as_tensor([t, s])


def in_numpy(x: Any, s: float, t: float) -> Any:
    recent = deque([s, 2.0, t])
    text = f"{np.mean(recent):.5f}"
    return (x * t).sum(), np.mean([s, t]), np.array([s, t, 1.0]), np.std((s, t)), np.mean(recent), text


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
@pytest.mark.parametrize("function", [weighted, in_numpy])
def test_lists_of_floats_that_vary_are_one_graph(function: Any, backend: str) -> None:
    stator.reset()
    compiled = stator.compile(function, backend=backend, fullgraph=True)
    for n in range(6):
        x, y = (torch.arange(3.0, requires_grad=True) for _ in range(2))
        (total, *found), (wanted, *expected) = compiled(x, n / 7, 1 - n / 3), function(y, n / 7, 1 - n / 3)
        total.backward()
        wanted.backward()
        torch.testing.assert_close(total, wanted)
        torch.testing.assert_close(x.grad, y.grad)
        for a, b in zip(found, expected, strict=True):
            assert type(a) is type(b) and getattr(a, "dtype", None) == getattr(b, "dtype", None)
            assert a == b if isinstance(b, str) else np.allclose(a, b, rtol=1e-15, atol=0)
    assert stator.stats().graphs <= 3
