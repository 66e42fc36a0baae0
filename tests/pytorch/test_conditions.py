"""Comparisons of numbers that have varied, in places where a bool is a number."""

import pytest
import torch

import stator

PROGRAMS = [
    "(n == 1) == True",
    "(n == 1) != (n == 2)",
    "(n > 2) < (n > 3)",
    "(n == 1) == 1.0",
    "-(n > 2)",
    "abs(n > 2)",
    "(n > 2) + (n > 3) - (n > 1) * 2",
    "(n > 2) / 2",
    "5 // (n > 0)",
    "2 ** (n > 2)",
    "(n > 2) % 2",
    "max(n > 2, n > 3)",
    "sorted([n > 3, n > 2])",
]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("text", PROGRAMS)
def test_a_condition_is_a_number(text, backend):
    program = eval(f"lambda x, n: (x * n, {text})")
    compiled = stator.compile(program, backend=backend)
    for n in (3, 4, 2, 1, 5, 3):
        x = torch.ones(2, requires_grad=True)
        product, answer = compiled(x, n)
        product.sum().backward()
        assert answer == program(x, n)[1] and type(answer) is type(program(x, n)[1])
        assert x.grad.tolist() == [n, n]
    with pytest.raises(ZeroDivisionError):
        stator.compile(lambda n: 5 // (n > 8), backend=backend)(n)
