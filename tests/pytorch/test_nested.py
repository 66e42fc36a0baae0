"""Nested tensors of the strided layout, made in a compiled function of a list of tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stator
from tests.pytorch.gradients import BACKENDS, alike

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
backends = pytest.mark.parametrize("backend", BACKENDS)


def rows(n: int) -> Any:
    return torch.linspace(-1, 1, n * 4).reshape(n, 4), torch.linspace(0, 2, (n + 1) * 3).reshape(n + 1, 3)


def nested(a: Any, b: Any) -> Any:
    return torch.nested.nested_tensor([a, b])


def shared(a: Any, b: Any) -> Any:
    """What is written to the rows is written to the nested tensor, and nowhere else."""
    n = nested(a, b)
    n.unbind()[0].mul_(3)
    a.add_(1)
    return n.unbind()[0], a


PROGRAMS = {
    "padded": lambda a, b: torch.nested.to_padded_tensor(nested(a, b), 0.0),
    "method": lambda a, b: nested(a, b).to_padded_tensor(-1.0) * 2,
    "rows": lambda a, b: [row + 1 for row in nested(a, b).unbind()],
    "iterated": lambda a, b: [row + 1 for row in nested(a, b)],
    "arithmetic": lambda a, b: (nested(a, b) * 2 + nested(a, b) - 1).to_padded_tensor(0.0),
    "functions": lambda a, b: torch.relu(nested(a, b).sin()).neg().to_padded_tensor(0.0),
    "facts": lambda a, b: [str([f(nested(a, b)) for f in FACTS]), a + 1],
    "shared": shared,
}
FACTS = [
    *[lambda n: n.is_nested, lambda n: n.dtype, lambda n: n.dim(), lambda n: n.size(0), lambda n: n.requires_grad],
    *[lambda n: n.device, lambda n: n.layout, lambda n: n.is_quantized, lambda n: n.ndim, lambda n: len(n.unbind())],
]


@backends
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_done_to_one(name: str, backend: str) -> None:
    alike(lambda: (PROGRAMS[name], []), rows, backend=backend, sizes=(4, 7, 5), breaks=0)


def test_with_inductor() -> None:
    alike(lambda: (PROGRAMS["arithmetic"], []), rows, backend="inductor", sizes=(4,), calls=1, breaks=0, tolerance=1e-6)


@backends
def test_one_that_is_a_result(backend: str) -> None:
    compiled = stator.compile(lambda a, b: nested(a, b) * 2, backend=backend)
    for n in (4, 7):
        a, b = rows(n)
        got = compiled(a, b)
        assert got.is_nested and all(map(torch.equal, got.unbind(), (a * 2, b * 2)))
    assert stator.stats().graph_breaks == 0


@backends
def test_other_operations_are_left_to_python(backend: str) -> None:
    def run(a: Any, b: Any) -> Any:
        n = nested(a, b)
        return torch.nested.to_padded_tensor(torch.softmax(n, -1), 0.0), n.numel(), n.size(1) if False else 1

    alike(lambda: (run, []), rows, backend=backend, sizes=(4, 7), tolerance=1e-6)


@backends
def test_an_operation_that_torch_has_not_raises_as_in_eager(backend: str) -> None:
    with pytest.raises(NotImplementedError, match="Could not run"):
        stator.compile(lambda a, b: 1 - nested(a, b), backend=backend)(*rows(4))


@backends
@pytest.mark.parametrize("requires_grad", [False, True])
def test_one_that_exists(requires_grad: bool, backend: str) -> None:
    def run(n: Any) -> Any:
        return (n * 2).to_padded_tensor(0.0), [row + 1 for row in n], n.unbind()[0] - 1, torch.relu(n + n).unbind()[1]

    compiled = stator.compile(run, backend=backend)
    for size in (2, 5, 3):
        n = torch.nested.nested_tensor([*rows(size)][:1] * 2, requires_grad=requires_grad)
        got, expected = compiled(n), run(n)
        for one, other in zip(_tensors(got), _tensors(expected), strict=True):
            assert torch.equal(one, other) and one.requires_grad == other.requires_grad
    assert requires_grad or stator.stats().graph_breaks == 0


def _tensors(result: Any) -> list[Any]:
    return [result[0], *result[1], *result[2:]]
