"""Which operations run on fake tensors, and how often."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch

import stator
from stator.pytorch.fake import memo, small
from stator.pytorch.fake.fake_executor import FakeExecutor
from stator.pytorch.fake.memo import MEMO
from tests.pytorch.programs import assert_same
from tests.pytorch.training import BACKENDS


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The operations that ran on fake tensors, none of which was remembered before."""
    found: list[Any] = []
    run = FakeExecutor.run
    monkeypatch.setattr(small, "preferable", lambda metas: False)
    monkeypatch.setattr(FakeExecutor, "run", lambda self, f, *rest: found.append(f) or run(self, f, *rest))
    MEMO.clear()
    return found


def check(fn: Any, *args: Any) -> None:
    assert_same(stator.compile(fn, backend="eager", fullgraph=True)(*args), fn(*args), "the first call")


def test_an_operation_runs_once(ran: list[Any]) -> None:
    def fn(a: Any) -> Any:
        for _ in range(10):
            a = torch.sin(a)
        return a

    check(fn, torch.randn(3))
    assert len(ran) == 1


def writes_through_views(a: Any) -> Any:
    b = a * 2
    for _ in range(10):
        b[1:].add_(1)
    return b


def test_a_write_through_a_view_is_remembered(ran: list[Any]) -> None:
    check(writes_through_views, torch.randn(3))
    assert len(ran) == 3


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_number_that_varies_is_written_through_a_view(backend: str) -> None:
    def fn(number: int) -> Any:
        return torch.arange(6.0).reshape(2, 3).add_(number)

    compiled, before = stator.compile(fn, backend=backend, fullgraph=True), stator.stats()
    for number in range(2, 6):
        assert_same(compiled(number), fn(number), f"with {number}")
    assert stator.stats().diff(before).graphs == 2


def test_a_write_through_a_view_with_a_history_is_not(ran: list[Any]) -> None:
    check(writes_through_views, torch.randn(3, requires_grad=True))
    assert len(ran) > 10


def test_constants_do_not_ask_for_what_came_before(ran: list[Any]) -> None:
    def fn(a: Any) -> Any:
        for i in range(5):
            a = torch.sin(a) + torch.tensor(float(i))
        return a

    check(fn, torch.randn(3))
    assert ran.count(torch.sin) == 1


def test_a_constant_that_is_written_is_known_no_more(ran: list[Any]) -> None:
    def fn(a: Any) -> Any:
        t = torch.tensor(1)
        before = t.item()
        t.add_(2)
        return a * before, a * t.item()

    check(fn, torch.randn(3))


def test_outcomes_that_nobody_asks_for_are_forgotten(ran: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "_GENERATION", 4)
    kept = []
    for number in range(20):
        check(lambda a, number=number: torch.sin(a) + number, torch.randn(3))
        kept.append(len(MEMO._young) + len(MEMO._old))
    assert max(kept) <= 8
    assert ran.count(torch.sin) == 1


def test_a_function_in_the_graph_goes_with_what_is_known_of_it(ran: list[Any]) -> None:
    def once() -> None:
        @stator.allow_in_graph
        def twice(a: Any) -> Any:
            return a * 2

        check(lambda a: twice(a) + 1, torch.randn(3))

    once()
    ran.clear()
    stator.reset()
    gc.collect()
    before = len(MEMO._young)
    once()
    ran.clear()
    stator.reset()  # a later compile() call of the same code could use the graph
    gc.collect()
    assert len(MEMO._young) == before
