"""Loops over ranges that end at a size: in steps, only the number of rounds is assumed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator
from tests.pytorch.programs import assert_same
from tests.pytorch.training import BACKENDS


def in_chunks(x: Any) -> Any:
    return torch.stack([x[i : i + 4].sum() for i in range(0, x.shape[0], 4)])


def backwards(x: Any) -> Any:
    return torch.stack([x[i] * i for i in range(x.shape[0] - 1, -1, -4)])


def by_a_size(x: Any) -> Any:
    return torch.stack([x[i].sin() for i in range(0, x.shape[0], x.shape[0])])


def left_early(x: Any) -> Any:
    for i in range(0, x.shape[0], 3):
        if i > 3:
            return x * i
    return x * 2


def listed(x: Any) -> Any:
    return torch.cat([x[i : i + 4].flip(0) for i in list(range(0, x.shape[0], 4))])


def of_a_generator(x: Any) -> Any:
    return torch.cat([part * i for i, part in enumerate(x[start : start + 4] for start in range(0, len(x), 4))])


def no_step(x: Any) -> Any:
    try:
        return x * len(list(range(0, 5, x.shape[0] - x.shape[0])))
    except ValueError as e:
        return x * len(str(e))


#: programs, and how many graphs there are after each size
PROGRAMS: dict[Callable[[Any], Any], list[int]] = {
    in_chunks: [1, 2, 2, 2, 3],
    backwards: [1, 2, 2, 2, 3],
    by_a_size: [1, 2, 2, 2, 2],
    left_early: [1, 2, 2, 2, 2],
    of_a_generator: [1, 2, 2, 2, 3],
    no_step: [1, 2, 2, 2, 2],
}


@pytest.mark.parametrize(
    ("program", "backend"), [*itertools.product([*PROGRAMS, listed], BACKENDS), (by_a_size, "inductor")]
)
def test_results_and_gradients(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for n in (5, 6, 7, 8, 9, 12):
        left = []
        for run in (compiled, program):
            x = torch.arange(3.0 * n).sin().reshape(n, 3).requires_grad_()
            result = run(x)
            result.sum().backward()
            left.append((result, x.grad))
        assert_same(*left, str(n), 1e-5)


@pytest.mark.parametrize("program", PROGRAMS)
def test_graphs(program: Any) -> None:
    compiled = stator.compile(program, backend="eager")
    counts = []
    for n in (9, 10, 11, 10, 14):
        compiled(torch.ones(n, 3))
        counts.append(stator.stats().graphs)
    assert counts == PROGRAMS[program]
