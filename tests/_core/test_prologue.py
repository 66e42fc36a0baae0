"""What an entry does before its guards are checked: once in a dispatch, and never unseen by the guards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from stator import _core
from stator.guards.guard import Equals, Length, TypeIs
from stator.guards.program import compile_guards
from stator.guards.source import LocalSource

X = LocalSource(0, "x")


def function(x: Any) -> Any:
    return "ordinary", x


@pytest.fixture(params=[0, 10**6], ids=["shortcut", "walk"], autouse=True)
def revalidation(request: pytest.FixtureRequest) -> Iterator[None]:
    before, strict = _core.set_revalidation_minimum(request.param), _core.set_strict(True)
    yield
    _core.set_revalidation_minimum(before)
    _core.set_strict(strict)


def compiled(*entries: tuple[list[Any], Callable[[], object] | None]) -> Any:
    """Compiled entries of (guards, prologue), which are tried in this order."""
    region = _core.Region()
    for number, (guards, prologue) in reversed(list(enumerate(entries))):
        target = lambda number=number: ("entry", number)  # noqa: E731
        region.add(function.__code__, _core.Entry(compile_guards(guards), target, prologue=prologue))
    return _core.Compiled(function, region)


def test_it_is_run_before_each_call() -> None:
    ran: list[int] = []
    call = compiled(([TypeIs(X, int), Equals(X, 1)], lambda: ran.append(1)))
    for number in range(1, 12):
        assert call(1) == ("entry", 0)
        assert len(ran) == number


def test_the_guards_see_what_it_has_done() -> None:
    items = [1, 2]
    call = compiled(([TypeIs(X, list), Length(X, 1)], items.clear), ([Length(X, 0)], None))
    assert call(items) == ("entry", 1)
    call = compiled(([TypeIs(X, list), Length(X, 2)], items.clear), ([Length(X, 0)], None))
    for _ in range(9):
        items[:] = [1, 2]
        assert call(items) == ("entry", 1)
    call = compiled(([TypeIs(X, list), Length(X, 0)], items.clear))
    for _ in range(9):
        items[:] = [1, 2]
        assert call(items) == ("entry", 0)


def test_what_was_checked_before_it_is_checked_again() -> None:
    """The entry before it, which has no prologue, fails behind a guard that both have."""
    items = [1, 2]
    shared = [TypeIs(X, list), Length(X, 2)]
    call = compiled(([*shared, Equals(X, [])], None), (shared, items.clear), ([Length(X, 0)], None))
    for _ in range(9):
        items[:] = [1, 2]
        assert call(items) == ("entry", 2)


def test_entries_with_the_same_one_share_it() -> None:
    ran: list[int] = []

    def prologue() -> None:
        ran.append(1)

    call = compiled(*(([TypeIs(X, int), Equals(X, number)], prologue) for number in range(5)))
    for number in range(5):
        for _ in range(5):
            ran.clear()
            assert call(number) == ("entry", number)
            assert ran == [1]


def test_an_exception_in_it_means_that_the_entry_is_not_for_this_call() -> None:
    def fails() -> None:
        raise ValueError

    for _ in range(5):
        assert compiled(([], fails), ([], None))(1) == ("entry", 1)
        assert compiled(([], fails), ([], fails))(1) == ("ordinary", 1)


def test_what_is_no_exception_leaves_the_call() -> None:
    def stops() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compiled(([], stops), ([], None))(1)


def test_it_is_a_callable_or_none() -> None:
    program = compile_guards([])
    assert _core.Entry(program, None).prologue is None
    assert _core.Entry(program, None, prologue=print).prologue is print
    with pytest.raises(TypeError, match="prologue"):
        _core.Entry(program, None, prologue=1)
