"""`exchange`: two iterators of one builtin type change places."""

import sys
from collections import OrderedDict, deque

import pytest

from stator._core import exchange


@pytest.mark.parametrize("container", [{"a": 1, "b": 2}, {1, 2}, OrderedDict(a=1, b=2), deque("ab")])
def test_each_goes_on_where_the_other_would_have(container):
    first, second = iter(container), iter(container)
    items = list(container)
    next(first)
    counted = [sys.getrefcount(item) for item in (container, first, second)]
    exchange(first, second)
    assert [sys.getrefcount(item) for item in (container, first, second)] == counted
    assert (list(first), list(second)) == (items, items[1:])


class Numbers:
    def __init__(self):
        self.value = 1

    def __next__(self):
        return self.value


@pytest.mark.parametrize(
    "args", [(iter([]),), (iter([]), iter(())), (Numbers(), Numbers()), ([1], [2]), (1, 2), ((), ()), (str, int)]
)
def test_what_is_no_two_iterators_of_one_builtin_type(args):
    with pytest.raises(TypeError, match="two iterators of one builtin type"):
        exchange(*args)
