"""Of which branches one side leaves the loop that they are in."""

import pytest

from stator.bytecode.canonical import JUMPS
from stator.bytecode.decode import decode
from stator.bytecode.loop_exits import ends_loop


def condition(c, f):
    while c():
        f()


def condition_in_a_loop(c, f, items):
    for _ in items:
        while c():
            f()


def stop(c, f, items):
    for _ in items:
        f()
        if c():
            break
    return f


def stop_of_the_inner_loop(c, f, items):
    for _ in items:
        for _ in items:
            if c():
                break
            f()
        f()


def returns_in_a_loop(c, f, items):
    for item in items:
        if c():
            return item
        f()
    return None


def goes_on(c, f, items):
    for _ in items:
        if c():
            continue
        f()


def chooses(c, f, items):
    for _ in items:
        if c():
            f()
        f()


def chooses_a_loop(c, f, items):
    if c():
        for _ in items:
            f()


def chooses_behind_a_loop(c, f, items):
    for _ in items:
        f()
    if c():
        f()
    return f


def answers(function):
    """Of each branch in the line with `c()`."""
    decoded = decode(function.__code__)
    [line] = {instr.line for instr in decoded.instrs if instr.op == "LOAD_FAST" and instr.arg == "c"}
    branches = [i for i in decoded.instrs if i.line == line and i.op in JUMPS and i.op.startswith("POP_JUMP")]
    assert branches
    return {ends_loop(decoded, i.index, (i.arg, i.index + 1)) for i in branches}


@pytest.mark.parametrize(
    "function",
    [condition, condition_in_a_loop, stop, stop_of_the_inner_loop, returns_in_a_loop],
    ids=lambda function: function.__name__,
)
def test_ends_a_loop(function):
    assert answers(function) == {True}


@pytest.mark.parametrize(
    "function", [goes_on, chooses, chooses_a_loop, chooses_behind_a_loop], ids=lambda function: function.__name__
)
def test_ends_no_loop(function):
    assert answers(function) == {False}
