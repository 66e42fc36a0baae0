"""The recursion limit is the program's: what is traced counts as the frames it stands for, the tracer not at all."""

import sys
import traceback
from collections import OrderedDict, deque
from types import MappingProxyType

import pytest

import stator
from stator._core import C_RECURSION_LIMIT


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


def shown_depth(make, levels):
    """Whether the `repr` of an object that holds another, and so on, so many `levels` deep, is made."""
    made = 0
    for _ in range(levels):
        made = make(made)
    try:
        return len(repr(made)) > levels
    except RecursionError:
        return False


@pytest.mark.parametrize(
    ("make", "calls"),
    [
        (lambda item: [item], 1),
        (lambda item: {1: item}, 1),
        (lambda item: {1: item}.values(), 2),
        (lambda item: {1: item}.items(), 3),
        (lambda item: deque([item]), 2),
        (lambda item: MappingProxyType({1: item}), 2),
        (lambda item: OrderedDict(a=item), 2),
        (lambda item: ValueError(item), 1),
        (lambda item: ValueError(1, item), 2),
    ],
)
def test_a_repr_goes_as_deep_as_c_code_may(make, calls):
    """Each object's `repr` is a call of C code by C code, and so is that of the list by which a view is shown."""
    limit = C_RECURSION_LIMIT or sys.getrecursionlimit()
    compiled = stator.compile(shown_depth, backend="eager", fullgraph=limit < 2000)
    for levels in (limit * 4 // 5 // calls, limit * 21 // 20 // calls):
        assert compiled(make, levels) == shown_depth(make, levels)
