"""Branches on what is computed of integers, and of what objects hold, that was there before: guarded, until they have
gone both ways."""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import pytest
import torch

import stator
from tests.pytorch.gradients import BACKENDS, alike, vector


def inputs(n: int) -> tuple[torch.Tensor, ...]:
    return torch.linspace(0.5, 1.5, n).requires_grad_(), torch.arange(1, n + 1)


def any_of(x: Any, ids: Any) -> Any:
    return x + 1 if (ids < 0).any() else x * 2


def number(x: Any, ids: Any) -> Any:
    n = ids.max().item()
    return x + 1 if n + 1 > 50 else x * 2


def truth(x: Any, ids: Any) -> Any:
    return x + 1 if bool(ids.float().mean() < 0) else x * 2


def combined(x: Any, ids: Any) -> Any:
    is_plain = ids is not None and not (ids < 0).any() and x.dim() == 1
    return x * 2 if is_plain else x + 1


def left_operand(x: Any, ids: Any) -> Any:
    return x + 1 if (ids < 0).any() or x.dim() > 1 else x * 2


def without_gradients(x: Any, ids: Any) -> Any:
    unfinished = torch.ones(2, dtype=torch.long)
    with torch.no_grad():
        if (ids[-1] < 0).item() or unfinished.max() == 0:
            return x + 1
    return x * 2


def loop(x: Any, ids: Any) -> Any:
    for i in range(3):
        if ids[i] > 50:
            break
        x = x * 2
    return x


class Tableau(NamedTuple):
    """The coefficients of a solver, as libraries have them."""

    alpha: torch.Tensor
    weights: list[torch.Tensor]


class Solver:
    """Holds coefficients and a step, which changes."""

    def __init__(self) -> None:
        self.tableau = Tableau(torch.tensor([0.2, 0.3, 1.0]), [torch.tensor([0.5]), torch.tensor([1.5, 0.0])])
        self.step = torch.tensor(0.5)


def coefficients(solver: Solver, x: Any) -> Any:
    for alpha in solver.tableau.alpha:
        x = x * 2 if alpha == 1.0 else x + alpha
    return x if solver.tableau.weights[1][-1] == 0 else -x


def step(solver: Solver, x: Any) -> Any:
    return x * 2 if torch.isfinite(solver.step) else x + 1


def passed(solver: Solver, x: Any) -> Any:
    return x * 2 if solver.step < x.detach().sum() else x + 1


def written(solver: Solver, x: Any) -> Any:
    solver.step.mul_(float("inf"))
    return x * 2 if torch.isfinite(solver.step) else x + 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [coefficients, step])
def test_floats_that_an_object_holds_are_guarded(program: Any, backend: str) -> None:
    solver = Solver()
    alike(lambda: ((lambda x: program(solver, x)), []), vector, backend=backend, sizes=(3, 5, 7), breaks=0)
    compiled = stator.compile(program, backend=backend)
    for number in (1.0, 0.5, math.nan, 1.0, math.inf, 2.0):
        solver.step.fill_(number)
        solver.tableau.alpha[1] = number
        wanted = program(solver, torch.ones(3))
        torch.testing.assert_close(compiled(solver, torch.ones(3)), wanted, rtol=0, atol=0, equal_nan=True)
    solver.tableau.weights[1][-1] = 1
    assert torch.equal(compiled(solver, torch.ones(3)), program(solver, torch.ones(3)))
    assert stator.stats().graphs <= 9


def test_floats_that_are_passed_are_not() -> None:
    solver, other = Solver(), Solver()
    compiled = stator.compile(passed, backend="eager")
    for factor in (1, -1, 1):
        assert torch.equal(compiled(solver, factor * torch.ones(3)), passed(other, factor * torch.ones(3)))
    assert {b.code for b in stator.stats().breaks} == {"SB0201"}


class Counter:
    """What steps count in: the tensors are written before the program branches on them."""

    def __init__(self) -> None:
        self.step = torch.tensor(1.0)
        self.counts = torch.zeros(4)
        self.of_step = self.counts[1:2]


def counted_before(counter: Counter, x: Any) -> Any:
    counter.step += 1
    return x * 2 if counter.step > 5 else x + 1


def number_counted_before(counter: Counter, x: Any) -> Any:
    before = counter.step * 2
    torch._foreach_add_([counter.step, counter.counts], 1)
    return x * 2 if before.item() + counter.step.item() > 12 else x + counter.counts.sum()


def counted_in_a_view(counter: Counter, x: Any) -> Any:
    counter.counts[1:].add_(counter.step)
    counter.counts.view(2, 2)[1] *= 2
    return x * 2 if counter.counts.sum() > 90 else x + 1


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [written, counted_before, number_counted_before, counted_in_a_view])
def test_what_has_been_written_before_is_guarded(program: Any, backend: str) -> None:
    made = Solver if program is written else Counter
    one, other = made(), made()
    compiled = stator.compile(program, backend=backend)
    for n in (3, 3, 5, 7, 7, 7):
        assert torch.equal(compiled(one, torch.ones(n)), program(other, torch.ones(n)))
        assert torch.equal(one.step, other.step)
        assert program is written or torch.equal(one.counts, other.counts)  # type: ignore[union-attr]
        if n < 7:
            assert stator.stats().breaks == ()
    assert stator.stats().graphs <= 6


def another_view_written(counter: Counter, x: Any) -> Any:
    counter.counts.add_(1)
    return x * 2 if counter.of_step > 3 else x + 1


def written_through_another_view(counter: Counter, x: Any) -> Any:
    counter.of_step.add_(1)
    return x * 2 if counter.counts.sum() > 3 else x + 1


def more_of_the_memory(counter: Counter, x: Any) -> Any:
    counter.of_step.add_(1)
    return x * 2 if counter.of_step.as_strided((2,), (1,), 0).sum() > 3 else x + 1


@pytest.mark.parametrize("program", [another_view_written, written_through_another_view, more_of_the_memory])
def test_what_has_been_written_in_the_same_memory_is_as_in_eager(program: Any) -> None:
    one, other = Counter(), Counter()
    compiled = stator.compile(program, backend="eager")
    for _ in range(6):
        assert torch.equal(compiled(one, torch.ones(3)), program(other, torch.ones(3)))
        assert torch.equal(one.counts, other.counts)
    assert {b.code for b in stator.stats().breaks} == {"SB0201"}


def counted_in_place(x: Any, ids: Any) -> Any:
    counts = x.new_zeros(3, dtype=torch.long)
    before = counts.sum()
    counts.scatter_add_(0, ids % 3, torch.ones_like(ids))
    counts[0] += ids.max()
    return x + 1 if before + counts.max() > 50 else x * 2


def mask_of_the_shape(x: Any, ids: Any) -> Any:
    mask = x.new_ones(x.size(0))
    mask[:1] = ids[0].float()
    return x + 1 if (mask.mean() < 0).item() or int((mask * ids).max()) > 50 else x * 2


def filled_with_itself(x: Any, ids: Any) -> Any:
    largest = ids.max()
    return x + 1 if torch.full_like(largest, largest) + largest.new_full((2,), largest).sum() > 90 else x * 2


def of_a_size(x: Any, ids: Any) -> Any:
    about = (torch.tensor([x.size(0), int(ids.max())]) - 1.5) / 2
    return x + 1 if about.sum() > 30 else x * 2


def of_padded_sizes(x: Any, ids: Any) -> Any:
    padded = torch.nn.functional.pad(x, (0, x.size(0) + 1)).unsqueeze(0)
    mask = torch.arange(padded.size(1)) < ids[0]
    return x + 1 if mask.all() else x * 2


def key(x: Any, ids: Any) -> Any:
    table = {"row 1": x * 2, "row 1, 1": x * 3}
    return table.get(f"row {ids[0]}", x + 1) + table.get(f"row {int(ids[0])}, {ids.min()}", x + 1)


PROGRAMS = [any_of, number, truth, combined, left_operand, without_gradients, loop]
PROGRAMS += [counted_in_place, mask_of_the_shape, filled_with_itself, of_a_size, of_padded_sizes, key]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_goes_one_way_is_one_graph(program: Any, backend: str) -> None:
    alike(lambda: (program, []), inputs, backend=backend, sizes=(3, 5, 7), breaks=0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_goes_both_ways_is_as_in_eager(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for factor in (1, -1, 100, 1, -100, 1):
        x, ids = inputs(4)
        assert torch.equal(compiled(x, ids * factor), program(x, ids * factor))
    expected = {truth: set(), key: {"SB0101", "SB0201"}}.get(program, {"SB0201"})  # either truth has its entry
    assert {b.code for b in stator.stats().breaks} == expected
    assert stator.stats().graphs <= 7


def written_before(x: Any, ids: Any) -> Any:
    ids.add_(20)
    return x + 1 if ids.max() > 25 else x * 2


def view_written_before(x: Any, ids: Any) -> Any:
    ids[1:].add_(20)
    return x + 1 if ids[:2].max() > 25 else x * 2


def other_data(x: Any, ids: Any) -> Any:
    ids.data = ids + 20
    return x + 1 if ids.max() > 25 else x * 2


def drawn(x: Any, ids: Any) -> Any:
    return x + 1 if torch.randint_like(ids, 10).max() > 25 else x * 2


def drawn_into_new(x: Any, ids: Any) -> Any:
    return x + 1 if ids.new_zeros(5).random_(30).add_(ids[0]).max() > 25 else x * 2


def of_floats(x: Any, ids: Any) -> Any:
    return x + 1 if (x > 25).any() else x * 2


@torch.compiler.allow_in_graph
def counted(ids: Any) -> Any:
    return ids * 1


def of_the_program(x: Any, ids: Any) -> Any:
    return x + 1 if counted(ids).max() > 25 else x * 2


def written_after(x: Any, ids: Any) -> Any:
    x = x + 1 if ids.max() > 25 else x * 2
    ids.add_(20)
    return x


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "program",
    [
        *(written_before, view_written_before, other_data, drawn, drawn_into_new, of_floats, of_the_program),
        written_after,
    ],
)
def test_what_was_not_there_before_is_not_guarded(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for factor in (1, 2, 3, 10, 1):
        x, ids = inputs(4)
        ids = ids * factor
        others = copy.deepcopy(ids)
        torch.manual_seed(factor)
        expected = program(x, others)
        torch.manual_seed(factor)
        assert torch.equal(compiled(x, ids), expected)
        assert torch.equal(ids, others)
    assert stator.stats().graph_breaks > 0


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_a_guard_cannot_compute_fails_as_in_eager(backend: str) -> None:
    def counted(x: Any, ids: Any) -> Any:
        counts = torch.zeros(5, dtype=torch.long).scatter_add_(0, ids, torch.ones_like(ids))
        return x + 1 if counts.max() > 2 else x * 2

    compiled = stator.compile(counted, backend=backend)
    x, ids = inputs(4)
    assert torch.equal(compiled(x, ids), x * 2)
    with pytest.raises(RuntimeError, match="out of bounds"):
        compiled(x, ids + 3)
    assert torch.equal(compiled(x, ids), x * 2)


class Mode(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def test_modes_do_not_see_what_guards_compute() -> None:
    def seen(function: Any) -> list[str]:
        function(*inputs(4))
        function(*inputs(4))
        with Mode() as mode:
            function(*inputs(4))
        return mode.seen

    assert seen(stator.compile(any_of, backend="eager")) == seen(any_of)


def test_with_inductor() -> None:
    alike(lambda: (any_of, []), inputs, backend="inductor", sizes=(3, 5), breaks=0, tolerance=1e-6)
