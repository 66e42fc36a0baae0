"""Branches on integers that objects hold in tensors: they are guarded, until they have been seen to change."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stator
from tests.pytorch.gradients import BACKENDS, alike, vector


class Schedule:
    """A schedule as libraries of diffusion models have it."""

    def __init__(self) -> None:
        self.steps = torch.tensor([75, 50, 25, 0])
        self.table = torch.linspace(0.1, 1.0, 100)
        self.count = torch.tensor([0])

    def previous(self, step: Any) -> Any:
        before = step - 25
        return self.table[before] if before >= 0 else torch.tensor(1.0)


class Switched(torch.nn.Module):
    """A module with switches, as modules that observe have them."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("enabled", torch.tensor([1, 0], dtype=torch.uint8))

    def forward(self, x: Any) -> Any:
        x = x * 2 if self.enabled[0] == 1 else x
        return x if self.enabled[1] == 1 else x + 1


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loop_over_steps_is_one_graph(backend: str) -> None:
    schedule = Schedule()

    def program(x: Any) -> Any:
        for step in schedule.steps:
            x = x * schedule.previous(step) + schedule.table[step]
        return x

    alike(lambda: (program, []), vector, backend=backend, breaks=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_switches_are_guarded(backend: str) -> None:
    module = Switched()
    alike(lambda: (module, []), vector, backend=backend, breaks=0)
    compiled = stator.compile(module, backend=backend)
    for enabled in ([1, 0], [0, 0], [0, 1], [1, 1]):
        module.enabled.copy_(torch.tensor(enabled))
        assert torch.equal(compiled(torch.ones(3)), module(torch.ones(3)))


def lengths_of_a_mask(x: Any) -> Any:
    mask = x.new_ones((2, 4), dtype=torch.uint8)
    mask[1, 2:] = 0
    ends = mask.long().sum(dim=1) - 1
    parts = [x * i for i in range(4)]
    return sum(part for end in ends for part in reversed(parts[:end]))


def rows_of_a_mask(x: Any) -> Any:
    mask = torch.tensor([[1, 1, 0, 1], [1, 0, 0, 0]])
    valid = mask.nonzero()
    rows = [valid[valid[:, 0] == row] for row in valid[:, 0].unique()]
    most = mask.sum(dim=1).max()
    missing = [most - len(row) for row in rows]
    return sum(x * n if n <= 0 else x * row[:, 1].sum() for row, n in zip(rows, missing, strict=True))


PROGRAMS = [lengths_of_a_mask, rows_of_a_mask]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_constants_decide_is_one_graph(program: Any, backend: str) -> None:
    alike(lambda: (program, []), vector, backend=backend, breaks=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_depends_on_contents_breaks(backend: str) -> None:
    def program(x: Any) -> Any:
        mask = torch.ones(4)
        mask[0] = x[0]
        return sum(x * int(i) for i in mask.nonzero())

    compiled = stator.compile(program, backend=backend)
    for first in (1.0, 0.0, 1.0):
        x = torch.tensor([first, 2.0, 3.0])
        assert torch.equal(compiled(x), program(x))
    assert stator.stats().graph_breaks == 1


def test_constants_with_inductor() -> None:
    alike(lambda: (rows_of_a_mask, []), vector, backend="inductor", sizes=(3, 5), breaks=0, tolerance=1e-6)


def test_with_inductor() -> None:
    module = Switched()
    alike(lambda: (module, []), vector, backend="inductor", sizes=(3, 5), breaks=0, tolerance=1e-6)


def written_before(schedule: Schedule, x: Any) -> Any:
    schedule.count += 1
    return x + 1 if schedule.count > 2 else x - 1


def written_after(schedule: Schedule, x: Any) -> Any:
    x = x + 1 if schedule.count > 2 else x - 1
    schedule.count += 1
    return x


def written_elsewhere(schedule: Schedule, x: Any) -> Any:
    schedule.same.add_(1)
    return x + 1 if schedule.count > 2 else x - 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [written_before, written_after, written_elsewhere])
def test_what_changes_breaks(program: Any, backend: str) -> None:
    def results(wrap: Any) -> Any:
        schedule = Schedule()
        schedule.same = schedule.count.view(1, 1)
        function = wrap(lambda x: program(schedule, x))
        return [function(torch.zeros(1)).item() for _ in range(6)], schedule.count.item()

    assert results(lambda fn: stator.compile(fn, backend=backend)) == results(lambda fn: fn)
    stats = stator.stats()
    assert [b.code for b in stats.breaks] == ["SB0201"]
    assert stats.graphs <= 4


@pytest.mark.parametrize("backend", BACKENDS)
def test_attributes_that_are_views_are_known(backend: str) -> None:
    def program(x: Any) -> Any:
        matrix = torch.eye(3) * 2
        return x + 1 if torch.isclose(matrix, matrix.mT).all() and matrix.data.T[0, 0] == 2 else x

    def scored(x: Any) -> Any:
        normal = torch.distributions.MultivariateNormal(torch.zeros(3), covariance_matrix=torch.eye(3) * 2)
        return normal.log_prob(x[:, None].expand(-1, 3))

    for each in (program, scored):
        alike(lambda each=each: (each, []), vector, backend=backend, breaks=0)  # type: ignore[misc]


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.tensor(2))
        self.register_buffer("rate", torch.tensor(0.5))

    def rows(self, x):
        x.add_(1)
        return torch.arange(9)[: int(self.steps)], int(self.steps)

    def before_and_after(self, x):
        before = int(self.steps)
        x.add_(1)
        return before, int(self.steps)

    def branch(self, x):
        before = 1 if self.steps > 2 else 0
        x.add_(1)
        return before, 1 if self.steps > 2 else 0

    def rounds(self, x):
        found = []
        for _ in range(int(self.steps)):
            x.add_(1)
            found.append(int(self.steps))
        return found


@pytest.mark.parametrize("order", [(False, False, True, False), (True, False, True)])
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("name", ["rows", "before_and_after", "branch", "rounds"])
def test_a_write_to_another_tensor_may_be_one_to_the_member(name, backend, order):
    """The caller may give what the module holds."""
    function = getattr(Counter, name)
    stator.reset()
    compiled = stator.compile(function, backend=backend)
    for is_member in order:
        outcomes = []
        for run in (function, compiled):
            module = Counter()
            x = module.steps if is_member else module.steps.clone()
            outcomes.append((str(run(module, x)), x.item(), module.steps.item()))
        assert outcomes[0] == outcomes[1]
