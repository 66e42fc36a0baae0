"""Functions that wear `torch._disable_dynamo` are traced through: the function called is the one they would call."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch
import torch._refs  # the reference implementations wear it

import stator

X = torch.zeros(2)


def add_one(x: Any) -> Any:
    return x + 1


def add_two(x: Any) -> Any:
    return x + 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_types_are_promoted_by_reference_implementations(backend: str) -> None:
    """What they wear is itself dressed up as another function, so that its `__wrapped__` is that one."""

    def program(a: Any, b: Any) -> Any:
        return torch._refs.true_divide(a, b)

    a, b = torch.ones(3, dtype=torch.int64), torch.full((3,), 2.0)
    assert torch.equal(stator.compile(program, backend=backend)(a, b), program(a, b))


def test_what_a_wrapper_says_it_wraps_is_not_what_it_calls() -> None:
    wearing = functools.wraps(add_two)(torch._disable_dynamo(add_one))
    assert stator.compile(lambda x: wearing(x), backend="eager")(X).tolist() == [1, 1]


def test_the_function_may_be_another_later() -> None:
    wearing = torch._disable_dynamo(add_one)
    compiled = stator.compile(lambda x: wearing(x), backend="eager")
    assert compiled(X).tolist() == [1, 1]
    cell = wearing.__closure__[wearing.__code__.co_freevars.index("fn")]
    cell.cell_contents = add_two
    assert compiled(X).tolist() == [2, 2]
