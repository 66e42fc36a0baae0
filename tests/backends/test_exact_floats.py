"""Floats that a graph reads out of tensors are Python's, of double precision, with every backend."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

import stator
from tests.pytorch.old_torch import fails_on_old_torch

PROGRAMS = {
    "full": lambda x, rate: torch.full((2,), rate, dtype=torch.float64) + x.sum(),
    "filled": lambda x, rate: torch.empty_like(x).fill_(rate) + x,
    "computed": lambda x, rate: torch.full((2,), math.sqrt(rate * 3.3 + 1), dtype=torch.float64) + x.sum(),
    "integers": lambda x, rate: x * torch.full((3,), int(rate * 1e12)),
    "chosen": lambda x, rate: torch.where(x > 0.15, rate, x),
    "masked": lambda x, rate: x.masked_fill(x > 0.15, rate),
    "powers": lambda x, rate: x**rate,
    "modulo": lambda x, rate: x % rate,
    "written": lambda x, rate: _written(x.clone(), rate),
    "multiplied": lambda x, rate: x * rate,
    "times an integer": lambda x, rate: x * int(rate * 1e3),
    "over a rounded": lambda x, rate: x / round(rate * 1e3),
    "by a ceiling": lambda x, rate: x[: math.ceil(rate * 3)] * 2,
}


BACKENDS = ("eager", "aot_eager", "inductor")
#: whose backward passes torch 2.13 does not compile
_NEW = {("powers", "aot_eager"), ("powers", "inductor"), ("by a ceiling", "inductor")}
CASES = [
    pytest.param(*case, marks=fails_on_old_torch("its backward pass is not compiled") if case in _NEW else ())
    for case in itertools.product(PROGRAMS, BACKENDS)
]


def _written(x, value):
    x[1] = value
    return x


@pytest.mark.parametrize(("name", "backend"), CASES)
def test_floats_read_in_a_graph_keep_their_bits(name, backend):
    program = PROGRAMS[name]

    def f(x):
        return program(x, x.detach().mean().item())

    compiled = stator.compile(f, backend=backend, fullgraph=True)
    for numbers in ([0.1, 0.2, 0.7], [0.3, 0.1, 0.9], [0.2, 0.2, 0.3]):
        results = []
        for function in (f, compiled):
            x = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
            made = function(x)
            made.sum().backward()
            results.append((made, x.grad))
        torch.testing.assert_close(*results, rtol=1e-14, atol=0)


@pytest.mark.parametrize("number", (0.7, 0.57, 0.29))
def test_sizes_computed_of_floats_are_pythons(number):
    """In single precision 0.7 * 10 is less than 7."""

    def f(x, rate):
        return x[: int((rate * 1).item() * 100)].sin()

    x, rate = torch.randn(99), torch.tensor(number, dtype=torch.float64)
    torch.testing.assert_close(stator.compile(f, backend="inductor")(x, rate), f(x, rate))


def test_a_pass_of_the_programs_own_runs_too():
    seen = []

    def f(x):
        return torch.full((2,), x.mean().item(), dtype=torch.float64)

    options = {"post_grad_custom_post_pass": seen.append}
    x = torch.tensor([0.1, 0.2, 0.4], dtype=torch.float64)
    assert torch.equal(stator.compile(f, backend="inductor", options=options)(x), f(x))
    assert len(seen) == 1
