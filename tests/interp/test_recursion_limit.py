"""The recursion limit is the program's: what is traced counts as the frames it stands for, the tracer not at all."""

import sys
import traceback

import pytest

import stator


def endless():
    endless()


def mutual(n):
    return other(n + 1)


def other(n):
    return mutual(n + 1)


def length(function, *args):
    try:
        function(*args)
    except RecursionError as error:
        return len(traceback.extract_tb(error.__traceback__)), str(error)
    return None


def within(more, function, *args):
    """Call the function with a limit of so many more calls than the lowest that can be set here."""
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(next(depth for depth in range(1, limit) if settable(depth)) + more)
        return function(*args)
    finally:
        sys.setrecursionlimit(limit)


def settable(depth):
    try:
        sys.setrecursionlimit(depth)
    except RecursionError:
        return False
    return True


def test_endless_recursion_ends_where_it_would():
    compiled = stator.compile(length, backend="eager")
    assert [compiled(endless) for _ in range(2)] == [length(endless) for _ in range(2)]


@pytest.mark.parametrize("more", [60, 250])
def test_a_limit_below_what_is_traced(more):
    expected = within(more, length, mutual, 0)
    assert within(more, stator.compile(length, backend="eager"), mutual, 0) == expected


def in_body_and_handler():
    try:
        in_body_and_handler()
    except RecursionError:
        in_body_and_handler()


def test_recursion_in_handlers():
    compiled = stator.compile(in_body_and_handler, backend="eager")
    with pytest.raises(RecursionError):
        within(9, compiled)


def long_chain(n):
    """An exception is raised while the one before is handled, again and again."""
    if n == 0:
        raise ValueError
    try:
        long_chain(n - 1)
    except ValueError:
        long_chain(n - 1)


def test_long_chains_of_contexts_are_not_walked_for_each_exception():
    with pytest.raises(ValueError):
        stator.compile(long_chain, backend="eager")(10)
    assert stator.stats().trace_seconds < 5  # twelve, when they were
