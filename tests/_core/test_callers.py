"""What a call finds above it that generated code makes: the program's frames, as if nothing had been traced."""

import sys
import types
import warnings

import pytest

import stator
from stator._core import apply, called_from

NAMES = ("x", "y", "kept")


@stator.disable
def stack():
    """The frames of this file, innermost first: name, line, and those of the variables that are used later."""
    frame, found = sys._getframe(2), []
    while frame is not None and frame.f_code.co_name != "calls":
        known = {name: value for name, value in frame.f_locals.items() if name in NAMES}
        found.append((frame.f_code.co_name, frame.f_lineno, known))
        frame = frame.f_back
    return found


def calls(function, *args):
    return function(*args)


def agree(function, *args):
    expected = calls(function, *args)
    compiled = stator.compile(function, backend="eager")
    assert [calls(compiled, *args), calls(compiled, *args)] == [expected, expected]
    assert expected


def deeper(y):
    found = stack()
    return found, y


def outermost(x):
    kept = x + 1
    first = deeper(kept)
    try:
        second = [stack() for _ in range(2)]
        raise ValueError
    except ValueError:
        third = deeper(
            kept,
        )
    return first, second, third, kept, x


def test_frames_lines_and_live_variables():
    agree(outermost, 1)


def closes_over(x):
    def inner(y):
        nonlocal x
        x += 1
        return stack(), y

    return inner(2)


def test_shared_variables():
    agree(closes_over, 3)


def generates(x):
    for y in range(2):
        yield stack(), y, x


def runs_a_generator(x):
    return list(generates(x)), x


def test_generators():
    agree(runs_a_generator, 5)


@stator.disable
def keep_frame():
    return sys._getframe(2)


def keeps(x):
    y = [x]
    frame = keep_frame()
    return frame, y


def test_a_frame_that_is_kept_outlives_the_call():
    frame, y = stator.compile(keeps, backend="eager")(1)
    assert frame.f_code is keeps.__code__
    assert frame.f_locals["y"] is y
    assert frame.f_back.f_code.co_name == "test_a_frame_that_is_kept_outlives_the_call"
    assert frame.f_lineno == keeps.__code__.co_firstlineno + 2


@stator.disable
def warn_caller(x):
    warnings.warn(f"of {x}", UserWarning, stacklevel=3)


def warns(x):
    warn_caller(x)


def test_warnings_name_the_place_in_the_program():
    with pytest.warns(UserWarning) as record:
        stator.compile(warns, backend="eager")(1)
    assert (record[0].filename, record[0].lineno) == (__file__, warns.__code__.co_firstlineno + 1)


def test_globals_are_those_of_the_function():
    function = types.FunctionType(calls.__code__, {"__name__": "elsewhere"})
    assert called_from(((function, 0, ()),), (), lambda: sys._getframe(1).f_globals["__name__"]) == "elsewhere"


BAD = [None, (1,), ((1, 2, 3),), ((calls, -2, ()),), ((calls, 10**6, ()),), ((calls, 0, (99,)),), ((calls, 0, (0,)),)]


@pytest.mark.parametrize("frames", BAD)
def test_what_is_no_frame_is_refused(frames):
    with pytest.raises(TypeError, match="called_from"):
        called_from(frames, (), len, "abc")


class Receives:
    """Its call, made in C, keeps the tuple it is given."""

    __call__ = staticmethod(lambda *args: args)


def test_apply_hands_on_the_tuple():
    given = (1, 2)
    assert apply(Receives(), given) == given
    assert apply(dict, ([("a", 1)],), {"b": 2}) == {"a": 1, "b": 2}
    with pytest.raises(TypeError, match="apply"):
        apply(dict, [1])
