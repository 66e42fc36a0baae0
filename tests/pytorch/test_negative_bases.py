"""`(-2) ** x`, which is not `-2 ** x`: torch.fx writes it so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator
from tests.pytorch.each_backend import each_backend


def _assigned(x: torch.Tensor) -> torch.Tensor:
    power: Any = -2.0
    power **= x
    return power


def _of_both(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([(-2) ** x, -(2**x), -(x**2)])


PROGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "of a tensor": lambda x: (-2) ** x,
    "of a float": lambda x: (-1.5) ** x,
    "of infinity": lambda x: (-float("inf")) ** x,
    "assigned": _assigned,
    "beside the negative of a power": _of_both,
    "of a size": lambda x: x * (-1) ** x.size(0),
    "of a number that the graph reads": lambda x: x * (-1) ** int(x[0].item()),
}


@pytest.mark.parametrize(("name", "backend"), each_backend(PROGRAMS, ["of a tensor", "of a size"]))
def test_the_base_is_negative(name: str, backend: str) -> None:
    program = PROGRAMS[name]
    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for size in (2, 3, 4, 5):
        x = torch.full((size,), float(size))
        assert torch.equal(compiled(x), program(x)), size


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_in_a_branch_and_backward(backend: str) -> None:
    def either(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 6, lambda x: x * (-2) ** x.detach(), lambda x: x * (-3) ** x.detach(), (x,))

    stator.reset()
    compiled = stator.compile(either, backend=backend)
    for size in (2, 3, 4):
        x = torch.full((size,), 2.0, requires_grad=True)
        base = -2 if size > 3 else -3
        made = compiled(x)
        assert torch.equal(made, x * float(base**2))  # torch.cond itself compiles, with the wrong sign
        assert torch.equal(torch.autograd.grad(made.sum(), x)[0], torch.full((size,), float(base**2)))
