"""Tensors that are made of lists in which tensors or NumPy's scalars are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import stator
from tests.pytorch.programs import agree, assert_same

STACKED: dict[str, Any] = {
    "of a tensor": lambda a, i: torch.tensor([a[0], a.max()]),
    "with numbers": lambda a, i: torch.tensor((a[0], 2, True)),
    "nested": lambda a, i: torch.tensor([[a[0], 1.5], [2, i[1]]]),
    "of other types": lambda a, i: (torch.tensor([i[0].int(), i[1].int()]), torch.tensor([a[0].double(), 0.5])),
    "of a short type": lambda a, i: torch.tensor([a[0].half(), 0.5]),
    "of conditions": lambda a, i: torch.tensor([a[0] > 1, a[1] > 1]),
    "of a type that is asked for": lambda a, i: torch.tensor([a[0], i[1]], dtype=torch.float64),
    "of many digits": lambda a, i: torch.tensor([i[1] * 9007199791611905, 0.5]),
    "as a tensor": lambda a, i: torch.as_tensor([a[0], a[1].item(), a.shape[0]]),
    "of an old type": lambda a, i: torch.LongTensor([i[0], i[1]]),
    "of scalars of NumPy's": lambda a, i: (torch.tensor([a.numpy()[0], 2.0]), torch.tensor([i.numpy()[1], i[0]])),
}


def _arguments(size: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.arange(size) * 1.25, torch.arange(size)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", STACKED)
def test_elements_are_stacked(name: str, backend: str) -> None:
    agree(lambda: (STACKED[name], _arguments()), backend=backend)
    compiled = stator.compile(STACKED[name], backend=backend, fullgraph=True)
    for size in (3, 5, 4):
        assert_same(compiled(*_arguments(size)), STACKED[name](*_arguments(size)), name)


def test_with_inductor() -> None:
    agree(lambda: (lambda a, i: torch.tensor([a.sum(), i[2]]) * 2, _arguments()), backend="inductor")


def test_what_goes_on_with_it_has_gradients() -> None:
    def program(a: Any, i: Any) -> Any:
        return a.requires_grad_().sin() * torch.tensor([i[0], i[1], 0.5])

    agree(lambda: (program, _arguments()), backend="aot_eager", grad=True)


LEFT: dict[str, Any] = {
    "a number that may be too big": lambda a, i: torch.tensor([a[0].half(), i[1] * 100_000]),
    "an index": lambda a, i: torch.tensor([a[0]], dtype=torch.int64),
    "a scalar that is no index": lambda a, i: torch.tensor([np.bool_(i[1].item() > 0), 2]),
    "rows": lambda a, i: torch.tensor([[a[0]], [a[1], a[2]]]),
    "one element each": lambda a, i: torch.tensor([a[:1], a[1:2]]),
    "more elements": lambda a, i: torch.tensor([a[:2], a[1:3]]),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_torch_refuses_or_reads_otherwise(name: str) -> None:
    agree(lambda: (LEFT[name], _arguments()), breaks=None)
