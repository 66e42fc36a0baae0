"""Branches on whether a size in a tensor is 0: assumed not to be, and right where it is."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stator
from tests.pytorch.gradients import BACKENDS, alike

log: list[int] = []


def inputs(n: int) -> tuple[torch.Tensor, ...]:
    return (torch.linspace(-1.5, 2.0, n).requires_grad_(),)


def selected(x: Any) -> Any:
    return x[x.detach() > 0]


def early(x: Any) -> Any:
    found = selected(x)
    if found.numel() == 0:
        return x - 1
    return found.max() + found * 2


def comparison(x: Any) -> Any:
    found = selected(x)
    return found.sum() / found.shape[0] if found.shape[0] > 0 else x.sum()


def truth(x: Any) -> Any:
    found = selected(x)
    return found * 2 if found.numel() else x


def length(x: Any) -> Any:
    found = selected(x)[:, None].expand(-1, 3)
    if not len(found) or found.numel() < 1:
        return x
    return found.mean()


def written(x: Any) -> Any:
    total = x.detach()
    total.mul_(2)
    log.append(1)
    for row in (x, -x):
        found = torch.where(row.detach() > 0)[0]
        if found.numel() == 0:
            log.append(2)
            continue
        total.index_add_(0, found, torch.ones(()).expand(found.shape[0]))
    return x * total


def drawn(x: Any) -> Any:
    noise = torch.rand(()) + x
    return noise if selected(x).numel() == 0 else noise * x.sum()


PROGRAMS = [early, comparison, truth, length, written, drawn]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_one_graph(program: Any, backend: str) -> None:
    stats = alike(lambda: (program, []), inputs, backend=backend, sizes=(4, 6, 9), breaks=0)
    assert stats.graphs == 2


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_none_at_all_is_as_in_eager(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)

    def run(function: Any, factor: int) -> Any:
        log.clear()
        torch.manual_seed(0)
        x = (torch.linspace(0.5, 1.0, 4) * factor).requires_grad_()
        result = function(x)
        result.sum().backward()
        return result, x, x.grad, list(log), torch.rand(1)

    for factor in (1, -1, 1, -1, -1, 1, -1, 1):
        torch.testing.assert_close(run(compiled, factor), run(program, factor))
    stats = stator.stats()
    assert {b.code for b in stats.breaks} == {"SB0201"}
    assert stats.recompile_log[0].reason.startswith("no longer: sizes in tensors are rarely 0")


def test_fullgraph_never_breaks() -> None:
    compiled = stator.compile(early, backend="eager", fullgraph=True)
    for factor in (1, -1, -1, -1, -1, 1):
        x = torch.ones(3) * factor
        assert torch.equal(compiled(x), early(x))
    assert (stator.stats().graphs, stator.stats().graph_breaks) == (1, 0)


def by_number(x: Any) -> Any:
    return x + 1 if (x > 0).sum().item() == 0 else x


def by_size(x: Any) -> Any:
    return x + 1 if selected(x).numel() < 3 else x


def not_to_be_undone(x: Any) -> Any:
    x.mul_(2)  # a view that autograd knows
    return x + 1 if selected(x).numel() == 0 else x


@pytest.mark.parametrize("program", [by_number, by_size, not_to_be_undone])
def test_other_branches_break(program: Any) -> None:
    compiled = stator.compile(program, backend="eager")
    for factor in (1, -1):
        x, other = ((torch.ones(4, requires_grad=True) * factor)[1:] for _ in range(2))
        assert torch.equal(compiled(x), program(other))
    assert {b.code for b in stator.stats().breaks} == {"SB0201"}


def test_with_inductor() -> None:
    alike(lambda: (early, []), inputs, backend="inductor", sizes=(4, 6), breaks=0, tolerance=1e-6)
    compiled = stator.compile(early, backend="inductor")
    assert torch.equal(compiled(-torch.ones(3)), early(-torch.ones(3)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_operation_that_needs_a_number_made_of_a_size(backend: str) -> None:
    """It asks for the number, not whether the size is 0: there is nothing to be assumed (it was, without end)."""

    def scales(x: Any) -> Any:
        rows, columns = x[x[:, 0] > 0].shape
        return torch.tensor([[2.0 / (rows - 1.0), 0.0], [0.0, 2.0 / (columns - 1.0)]])

    compiled = stator.compile(scales, backend=backend)
    for n in (4, 7, 5):
        x = torch.ones(n, n)
        torch.testing.assert_close(compiled(x), scales(x))
