"""Functions that CPython itself computes: they end as they would in the program."""

import sys

import pytest

import stator


def deep_dict():
    made = {}
    for _ in range(sys.getrecursionlimit() + 100):
        made = {1: made}
    try:
        return len(repr(made))
    except RecursionError as e:
        return str(e)


def deep_key():
    made = ()
    for _ in range(sys.getrecursionlimit() + 100):
        made = (made,)
    try:
        return hash(made)
    except RecursionError as e:
        return str(e)


def deep_classes():
    made = (int,)
    for _ in range(sys.getrecursionlimit() + 100):
        made = (made,)
    out = []
    for check, value in ((isinstance, 1), (issubclass, int)):
        try:
            out.append(check(value, made))
        except RecursionError as e:
            out.append(str(e))
    return out


@pytest.mark.parametrize("program", [deep_dict, deep_key, deep_classes])
def test_they_nest_as_deep_as_the_program_may(program):
    assert stator.compile(program, backend="eager")() == program()


def test_the_core_restores_what_may_be_nested():
    from stator._core import call_within

    def depth_of(n):
        return n if n == 0 else 1 + depth_of(n - 1)

    for _ in range(100):
        with pytest.raises(RecursionError):
            call_within(20, depth_of, 50)
    assert call_within(100, depth_of, 50) == 50 and depth_of(200) == 200
    with pytest.raises(TypeError, match="a depth and a function"):
        call_within(1)
    with pytest.raises(TypeError):
        call_within("1", depth_of)
