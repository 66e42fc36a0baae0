"""Floats made of ints alone: AOTAutograd makes tensors of 32 bits of them, and torch simplifies them as reals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator
from tests.pytorch.each_backend import each_backend

COMPUTED: dict[str, Callable[[int], Any]] = {
    "a sum": lambda n: n + 0.5,
    "a conversion": float,
    "a product": lambda n: n * 0.5,
    "a product of three": lambda n: (n - 1) * 1e17 * 0.1,
    "a quotient": lambda n: n / 3,
    "a whole quotient": lambda n: n // 2 * 4 + 0.0,
    "a power": lambda n: n**3 + 0.0,
    "a product of itself": lambda n: n * n * 1.0,
    "a remainder": lambda n: float(n % 7 + n),
    "a larger one": lambda n: max(n, 5) * 1.0,
    "one of two": lambda n: (n if n > 4 else 3) / 3,
    "a power of a remainder": lambda n: 1.5 ** (n % 5),
    "over a remainder": lambda n: -1e17 / float(n % 3 + 1),
}


@pytest.mark.parametrize(("name", "backend"), each_backend(COMPUTED, ["a conversion", "a power", "a remainder"]))
def test_they_have_all_their_digits(name: str, backend: str) -> None:
    compute = COMPUTED[name]

    def program(x: torch.Tensor, n: int) -> torch.Tensor:
        return x * x + compute(n)

    stator.reset()
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for n in (3, 7, 100_003, 123_456_789, 2**40 + 1):
        x = torch.ones(n % 4 + 2, dtype=torch.float64, requires_grad=True)
        got, expected = compiled(x, n), program(x, n)
        assert torch.equal(got, expected), n
        assert torch.equal(*[torch.autograd.grad(made.sum(), x)[0] for made in (got, expected)]), n
    assert stator.stats().graphs <= 4, stator.stats().recompile_log


CONDITIONS: dict[str, Callable[[int], bool]] = {
    "a tenth": lambda n: n * 0.1 == 0.3,
    "more than tenths": lambda n: n * 0.1 > 0.3,
    "thirds": lambda n: n / 3 * 3 == n,
    "two sums": lambda n: n / 10 + n / 5 == n * 0.3,
    "what a sum loses": lambda n: (n + 1e17) - 1e17 == n,
    "and another": lambda n: ((n + 1e17) - 1e17 == n) & (n > 2),
    "an int of it": lambda n: int(n * 0.29 * 100) == n * 29,
}


@pytest.mark.parametrize(("name", "backend"), each_backend(CONDITIONS, []))
@pytest.mark.parametrize("of_size", [False, True])
def test_conditions_are_those_of_floats(name: str, backend: str, of_size: bool) -> None:
    condition = CONDITIONS[name]

    def program(x: torch.Tensor, n: int) -> torch.Tensor:
        return x + 1 if condition(x.size(0) if of_size else n) else x * 2

    stator.reset()
    compiled = stator.compile(program, backend=backend, fullgraph=True, recompile_limit=20)
    for n in (2, 5, 3, 7, 10, 100, 6, 9, 49, 39, 23):
        assert torch.equal(compiled(torch.ones(n), n), program(torch.ones(n), n)), n


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_an_error_is_raised_though_nobody_uses_the_number(backend: str) -> None:
    def program(x: torch.Tensor, rate: float, n: int) -> torch.Tensor:
        try:
            int(rate)
            n % int(rate)
            rate % (n - 3)
        except (ArithmeticError, ValueError) as e:
            return x + len(str(e))
        return x * rate

    stator.reset()
    compiled = stator.compile(program, backend=backend, recompile_limit=20)
    for rate, n in ((1.5, 4), (2.5, 5), (3.5, 6), (float("inf"), 5), (0.5, 4), (float("nan"), 5), (4.5, 3), (2.5, 7)):
        assert torch.equal(compiled(torch.ones(2), rate, n), program(torch.ones(2), rate, n)), (rate, n)
