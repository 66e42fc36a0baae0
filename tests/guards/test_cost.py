"""What the checks of guards cost."""

from __future__ import annotations

import time

from stator.guards.cost import guard_costs
from stator.guards.guard import Equals, Predicate
from stator.guards.program import compile_guards
from stator.guards.source import LocalSource

X, Y = LocalSource(0, "x"), LocalSource(1, "y")


def function(x: object, y: object) -> None:
    """Its guards are measured."""


def slow(x: object) -> bool:
    time.sleep(0.001)
    return True


def test_each_guard_has_its_own_cost() -> None:
    program = compile_guards([Equals(X, 1), Predicate((Y,), slow, "slow"), Equals(Y, 2)])
    first, second, third = guard_costs(program, function, (1, 2))
    assert second >= 1_000_000 and 0 <= first < 100_000 and 0 <= third < 100_000


def test_where_a_guard_fails_there_is_nothing_to_tell() -> None:
    assert guard_costs(compile_guards([Equals(X, 1)]), function, (2, 2)) == ()


def test_an_exception_that_is_no_exception_comes_out() -> None:
    def interrupted(x: object) -> bool:
        raise KeyboardInterrupt

    program = compile_guards([Predicate((X,), interrupted, "interrupted")])
    try:
        program.times(function, (1, 2))
    except KeyboardInterrupt:
        return
    raise AssertionError("it has been swallowed")


def test_measuring_keeps_no_reference() -> None:
    import sys

    value = object()
    program = compile_guards([Predicate((X,), lambda x: True, "true")])
    before = sys.getrefcount(value)
    for _ in range(10):
        program.times(function, (value, 2))
    assert sys.getrefcount(value) == before
