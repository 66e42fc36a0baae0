"""Programs of detection and generation that stop, choose or repeat by what is in tensors are right, whatever breaks."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from benchmarks.early_exits import PROGRAMS, tokens
from tests.pytorch.gradients import BACKENDS, alike


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_eager(name: str, backend: str) -> None:
    program, whole = PROGRAMS[name]
    alike(lambda: (program, []), tokens, backend=backend, sizes=(4, 7, 2), breaks=0 if whole else None)


def longest_first(order: Any) -> Any:
    """Takes what is left until nothing is, calling itself."""
    if order.numel() == 0:
        return order.sum()
    return order[0] + longest_first(order[1:][order[1:] > 1])


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_recursion_until_nothing_is_left_ends(backend: str) -> None:
    alike(
        lambda: (longest_first, []), lambda n: (torch.arange(float(n)),), backend=backend, sizes=(4, 7, 1), breaks=None
    )
