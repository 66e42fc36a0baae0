"""Errors of Python's numbers that a graph computes: a backend that computes them in tensors has infinities and NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator
from tests.pytorch.each_backend import each_backend

INF, NAN = math.inf, math.nan
NUMBERS = (1.5, 2.5, 0.0, -2.0, 2000.0, INF, -INF, NAN, 0.5, -0.0, 1e-300, 7.0, 1e300)

PROGRAMS: dict[str, Callable[[float], Any]] = {
    "one over it": lambda s: 1.0 / s,
    "over its difference": lambda s: 1.0 / (s - 1.5),
    "whole quotient": lambda s: 5.0 // s,
    "whole tenths": lambda s: s // 0.1,  # 7.0 // 0.1 is 69.0, and 7.0 / 0.1 is 70.0
    "whole parts below 0": lambda s: s // -0.3,
    "remainder": lambda s: 5.0 % s,
    "remainder of tenths": lambda s: s % 0.1,
    "quotient of two": lambda s: (s - 1.5) // s,
    "remainder of two": lambda s: (s - 1.5) % s,
    "exponent": lambda s: 2.0**s,
    "inverse": lambda s: s**-1,
    "root": lambda s: math.sqrt(s),
    "half": lambda s: abs(s) ** 0.5,
    "both": lambda s: abs(s) ** s,
    "square": lambda s: s**2 + 1,
    "root by power": lambda s: s**0.5,  # a complex number of a negative one
    "power of a negative": lambda s: (-2.0) ** s,
    "real root": lambda s: float(s**0.5) if isinstance(s**0.5, float) else -1.0,
    "unused": lambda s: (1.0 / s, s)[1],
    "unused and caught": lambda s: (_caught(s), s)[1] if _fails(s) else 2.0,
    "sign after a power": lambda s: (s**2, 1.0 if s >= 0 else -1.0)[1],
    "several": lambda s: (1 - 0.9**s) / (1.0 + s),
    "caught": lambda s: _caught(s),
}


def _caught(s: float) -> float:
    try:
        return 3.0 / s
    except ZeroDivisionError:
        return 7.0


def _fails(s: float) -> bool:
    try:
        3.0 / s
    except ZeroDivisionError:
        return True
    return False


def outcome(program: Any, *args: Any) -> str:
    try:
        return str(program(*args))
    except (ArithmeticError, TypeError, ValueError) as e:
        return f"{type(e).__name__}: {e}"


@pytest.mark.parametrize(
    ("name", "backend"), each_backend(PROGRAMS, ["one over it", "exponent", "whole tenths", "square", "unused"])
)
def test_of_a_number_that_the_graph_reads(name: str, backend: str) -> None:
    compute = PROGRAMS[name]
    stator.reset()

    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.ones(2, dtype=torch.float64) * compute(x.max().item())

    compiled = stator.compile(program, backend=backend)
    for number in NUMBERS:
        x = torch.full((3,), number, dtype=torch.float64)
        assert outcome(compiled, x) == outcome(program, x), number
    assert stator.stats().graphs <= 7


@pytest.mark.parametrize(("name", "backend"), each_backend(PROGRAMS, ["inverse", "root"]))
def test_of_a_number_that_varies(name: str, backend: str) -> None:
    compute = PROGRAMS[name]
    stator.reset()

    def program(x: torch.Tensor, s: float) -> torch.Tensor:
        return x * compute(s)

    compiled = stator.compile(program, backend=backend, recompile_limit=20)
    ones = torch.ones(2, dtype=torch.float64)
    for number in NUMBERS:
        assert outcome(compiled, ones, number) == outcome(program, ones, number), number


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_what_was_done_before_the_error_is_done_once(backend: str) -> None:
    def program(x: torch.Tensor, y: torch.Tensor, log: list[str]) -> torch.Tensor:
        x.add_(1)
        log.append("added")
        z = y * (1.0 / y.sum().item())
        x.mul_(2)
        log.append("normalized")
        return z

    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for values in (1.0, 2.0, 0.0, 3.0, 0.0):
        states = []
        for run in (compiled, program):
            x, log = torch.zeros(2), list[str]()
            y = torch.full((3,), values, requires_grad=True)
            told = outcome(lambda run=run, x=x, y=y, log=log: run(x, y, log).sum().backward(), *())
            states.append((told, x.tolist(), log, None if y.grad is None else y.grad.tolist()))
        assert states[0] == states[1]
    assert not stator.stats().breaks


def graphs_of(program: Any, *args: Any) -> list[str]:
    graphs: list[str] = []

    def backend(gm: torch.fx.GraphModule, examples: list[Any]) -> Any:
        graphs.append(str(gm.graph))
        return gm.forward

    stator.reset()
    stator.compile(program, backend=backend, dynamic=True)(*args)
    return graphs


def test_equal_operations_are_asserted_once() -> None:
    """An optimizer computes `beta ** step` for each parameter."""

    def program(x: torch.Tensor) -> Any:
        s = x.sum().item()
        return [x * (1 - 0.9**s) for _ in range(5)]

    (graph,) = graphs_of(program, torch.ones(3))
    assert graph.count("target=torch.ops.aten._assert_async.msg") == 1, graph


def test_of_sizes_there_is_nothing_to_assert() -> None:
    def program(x: torch.Tensor) -> Any:
        n = x.shape[0]
        return x * (1 / n), x * n**-0.5, x / math.sqrt(n + 1), x * ((n - 1) / (n + 3))

    graphs = graphs_of(program, torch.ones(4))
    assert "truediv" in graphs[0] and "_assert_async" not in graphs[0], graphs[0]


#: computed in another order, as real numbers allow it, or with ints as floats of 32 bits, each gives another number
ROUNDED: dict[str, Callable[[float, int], Any]] = {
    "what a sum loses": lambda s, n: (s + 1e17) - 1e17,
    "a sum of three": lambda s, n: (s + 0.1) + 0.2,
    "multiples": lambda s, n: s * 3.0 - s,
    "a cube": lambda s, n: s * s * s,
    "twice the complement": lambda s, n: 1 - (1 - s),
    "out of range and back": lambda s, n: s * 1e200 * 1e-200,
    "a sum": lambda s, n: sum([s, 0.3, s]),
    "times a sum": lambda s, n: 3.0 * (s + 0.1),
    "times an int": lambda s, n: s * n,
    "over an int": lambda s, n: s / n,
    "an int over it": lambda s, n: n / (s + 3),
    "with a float of ints": lambda s, n: n * 1.0 + s,
    "an int of it": lambda s, n: int(s * n) * 2.0,
    "a float of an int of it": lambda s, n: float(int(s * n)),
    "a difference": lambda s, n: (s - n) * 0.1,
    "a product of ints": lambda s, n: (n - 1) * 1e17 * 0.1 + s,
    "a difference of ints": lambda s, n: n - (1e17 - n) + 0 * s,
    "over a remainder": lambda s, n: s / float(n % 2 + 1),
    "a quotient of halves": lambda s, n: (s * 0 + 1e16) // 3.0,
    "a quotient of negatives": lambda s, n: (s + 1e17) // (s - 1e9),
}


@pytest.mark.parametrize(("name", "backend"), each_backend(ROUNDED, ["a sum of three", "over an int"]))
@pytest.mark.parametrize("reads", [False, True])
def test_what_is_computed_is_rounded_as_by_python(name: str, backend: str, reads: bool) -> None:
    compute = ROUNDED[name]
    stator.reset()

    def given(x: torch.Tensor, s: float, n: int) -> Any:
        return x * compute(s, n)

    def read(x: torch.Tensor, s: torch.Tensor, n: int) -> Any:
        number = compute(s.item(), n)
        return x * number, number

    program = read if reads else given
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for s, n in ((0.1, 3), (1.7, 2**25 + 1), (0.3, 2**26 + 3), (2.5, 7), (1e8 + 0.1, 2**40 + 7), (-0.7, 5)):
        x = torch.ones(n % 4 + 2, dtype=torch.float64, requires_grad=True)
        number: Any = torch.tensor(s, dtype=torch.float64) if reads else s
        got, expected = compiled(x, number, n), program(x, number, n)
        assert not reads or got[1] == expected[1]
        tensors = [made[0] if reads else made for made in (got, expected)]
        assert torch.equal(*tensors), (s, n)
        slopes = [torch.autograd.grad(made.sum(), x)[0] for made in tensors]
        assert torch.equal(*slopes), (s, n)
    assert stator.stats().graphs <= 4, stator.stats().recompile_log


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_is_computed_may_be_nan_or_known_only_by_its_value(backend: str) -> None:
    def program(x: torch.Tensor, s: float, n: int) -> Any:
        decided = (n**-0.5 - 1e17) ** -0.5  # a complex number
        return x * (s * 1e300 - s * 1e300) * decided, 2**n % 7

    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for s, n in ((1.5, 3), (1e200, 4), (1e300, 5), (2.5, 6), (1e250, 70), (0.5, 20000)):
        got, expected = compiled(torch.ones(2), s, n), program(torch.ones(2), s, n)
        assert torch.equal(got[0].isnan(), expected[0].isnan()) and got[1] == expected[1], (s, n)
    assert not [each for each in stator.stats().breaks if each.code == "SB0405"]


#: torch's expressions of these do not have the divisor, or are for any
DIVIDED: dict[str, Callable[[int, int], Any]] = {
    "by itself": lambda n, m: n // n,
    "modulo itself": lambda n, m: 1 + n % n,
    "of a multiple": lambda n, m: n * m // n,
    "unused": lambda n, m: (1 // n, m)[1],
    "among others": lambda n, m: (n // n - (m - 0.5)) ** -1,
    "floats of ints": lambda n, m: (1.5 + n) % (m - 0.5),
}


@pytest.mark.parametrize(("name", "backend"), each_backend([*DIVIDED][:-1], ["by itself"]))
def test_a_division_of_ints_that_the_graph_reads_is_an_error_of_zero(name: str, backend: str) -> None:
    compute = DIVIDED[name]
    stator.reset()

    def program(x: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        n, m = counts.tolist()
        return x * compute(n, m)

    compiled = stator.compile(program, backend=backend, recompile_limit=20)
    for n, m in ((3, 1), (4, 2), (5, 3), (0, 2), (2, 0), (7, 7), (0, 3)):
        args = torch.ones(2), torch.tensor([n, m])
        assert outcome(compiled, *args) == outcome(program, *args), (n, m)
    assert stator.stats().graphs == 1


@pytest.mark.parametrize(("name", "backend"), each_backend(DIVIDED, ["floats of ints"]))
def test_a_division_of_ints_is_an_error_of_zero(name: str, backend: str) -> None:
    compute = DIVIDED[name]
    stator.reset()

    def program(x: torch.Tensor, n: int, m: int) -> torch.Tensor:
        return x * compute(n, m)

    compiled = stator.compile(program, backend=backend, recompile_limit=20)
    for n, m in ((3, 1), (4, 2), (5, 3), (0, 2), (2, 0), (7, 7), (0, 3)):
        assert outcome(compiled, torch.ones(2), n, m) == outcome(program, torch.ones(2), n, m), (n, m)
