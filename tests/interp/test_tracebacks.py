"""What the frames in a traceback say of themselves, once they have been left."""

import ctypes
import sys
import time
import traceback
import types

import pytest

import stator
from apptests.tracebacks import FAILING, caught, raised_again, shown
from stator._core import finished_frame

NAMES = [function.__name__ for function in FAILING]


def frames(error):
    """Of each traceback entry: function, line of the entry, line of the frame."""
    found = []
    entry = error.__traceback__
    while entry is not None:
        frame = entry.tb_frame
        found.append((frame.f_code.co_name, entry.tb_lineno, frame.f_lineno))
        entry = entry.tb_next
    return found


def frames_of(function):
    return frames(caught(function))


def leave(function):
    function()


@pytest.mark.parametrize("function", FAILING, ids=NAMES)
def test_inside_the_trace(function):
    assert stator.compile(frames_of, backend="eager", fullgraph=True)(function) == frames_of(function)


@pytest.mark.parametrize("function", FAILING, ids=NAMES)
def test_outside_the_trace(function):
    compiled = stator.compile(leave, backend="eager", fullgraph=True)
    for _ in range(2):  # through the frame hook, and without a frame
        error = caught(compiled, function)
        assert frames(error)[1:] == frames(caught(leave, function))[1:]
        codes = [error.__traceback__.tb_next.tb_frame.f_code, error.__traceback__.tb_next.tb_next.tb_frame.f_code]
        assert codes == [leave.__code__, function.__code__]
        assert shown(error) == shown(caught(leave, function))


def leaves_a_new_group():
    try:
        raise ExceptionGroup("group", [AttributeError(1), IndexError(2)])
    except* IndexError:
        raise ValueError  # noqa: B904


def leaves_a_new_group_after_a_break():
    try:
        raise ExceptionGroup("group", [AttributeError(1), IndexError(2)])
    except* IndexError:
        time.sleep(0)
        raise ValueError  # noqa: B904


@pytest.mark.parametrize("program", [leaves_a_new_group, leaves_a_new_group_after_a_break])
def test_a_group_that_has_not_passed_a_line(program):
    compiled = stator.compile(program, backend="eager")
    for _ in range(2):
        assert frames(caught(compiled))[1:] == frames(caught(program))[1:]
    compiled = stator.compile(leave, backend="eager", fullgraph=True)
    assert frames(caught(compiled, leaves_a_new_group))[1:] == frames(caught(leave, leaves_a_new_group))[1:]


def test_a_frame_met_twice_is_one_frame():
    def program():
        return caught(raised_again)

    for error in (program(), stator.compile(program, backend="eager", fullgraph=True)()):
        first = error.__traceback__.tb_next
        assert first.tb_frame is first.tb_next.tb_frame
        assert first.tb_next.tb_next.tb_frame.f_back is first.tb_frame


def test_code_without_lines():
    def program():
        try:
            bare()
        except ZeroDivisionError as e:
            return e.__traceback__.tb_next.tb_frame.f_lineno
        return 0

    def bare():
        1 / 0  # noqa: B018

    bare.__code__ = bare.__code__.replace(co_linetable=b"\xf8\xf8\xf8\xf9\xf8\xf8\xf8")
    assert stator.compile(program, backend="eager", fullgraph=True)() is program() is None


def cleared():
    def inner():
        local = [1]
        raise LookupError(local)

    frame = caught(inner).__traceback__.tb_next.tb_frame
    frame.clear()
    return sorted(frame.f_locals)


def test_frames_are_cleared():
    assert stator.compile(cleared, backend="eager")() == cleared() == []


def test_a_finished_frame():
    outer = 1

    def closure(a):
        return a + outer

    made = finished_frame(closure.__code__, globals(), 0, sys._getframe(), None)
    assert isinstance(made, types.FrameType)
    assert made.f_code is closure.__code__
    assert made.f_globals is globals()
    assert made.f_back is sys._getframe()
    assert dict(made.f_locals) == {}
    assert made.f_lasti == 0
    made.clear()
    with pytest.raises(ValueError, match="no instruction"):
        finished_frame(closure.__code__, globals(), 10_000, None, None)
    with pytest.raises(TypeError, match="a frame or None"):
        finished_frame(closure.__code__, globals(), 0, 3, None)  # type: ignore[arg-type]


class Failing:
    def __init__(self, depth):
        self.depth = depth

    def fail(self, a, *rest, key=None):
        shared = [a]
        unset = 1
        del unset
        generator = (item + shared[0] for item in (1, 2))
        next(generator)
        return a / (self.depth - self.depth)


def failing(a):
    local = a + 1
    self = Failing(local)
    return self.fail(local, 7, key="k")


def shown_variables(function, *args):
    try:
        function(*args)
    except ZeroDivisionError as e:
        found = []
        step = e.__traceback__.tb_next
        while step is not None:
            found.append((step.tb_frame.f_code.co_name, dict(step.tb_frame.f_locals)))
            step = step.tb_next
        return found


def test_frames_of_a_traceback_have_their_variables():
    (outer, outer_locals), (inner, inner_locals) = shown_variables(stator.compile(failing, backend="eager"), 4)
    assert (outer, inner) == ("failing", "fail")
    assert outer_locals == {"a": 4, "local": 5, "self": outer_locals["self"]}
    assert inner_locals["self"] is outer_locals["self"] and inner_locals["self"].depth == 5
    assert next(inner_locals.pop("generator")) == 7
    del inner_locals["self"]
    assert inner_locals == {"a": 5, "rest": (7,), "key": "k", "shared": [5]}


def in_a_class_body(a):
    class Made:
        value = a
        ratio = a / 0


def test_frames_of_class_bodies_have_their_namespace():
    found = shown_variables(stator.compile(in_a_class_body, backend="eager"), 4)
    assert [name for name, _ in found] == ["in_a_class_body", "Made"]
    assert found[0][1] == {"a": 4}
    assert found[1][1]["value"] == 4 and found[1][1]["__qualname__"] == "in_a_class_body.<locals>.Made"


def kept_by_its_frame(a):
    try:
        failing(a)
    except ZeroDivisionError as e:
        saved = e
    stator.graph_break()
    return saved, [saved]


def test_variables_of_a_kept_exception():
    saved, (again,) = stator.compile(kept_by_its_frame, backend="eager")(4)
    assert saved is again
    assert saved.__traceback__.tb_next.tb_frame.f_locals["local"] == 5


def kept(x):
    doubled = x * 2
    try:
        doubled / 0
    except ZeroDivisionError as e:
        return e


def inlined(x):
    return kept(x)


@pytest.mark.parametrize("function", [kept, inlined])
def test_a_frame_that_has_returned_keeps_the_variables_that_a_traceback_shows(function):
    error = stator.compile(function, backend="eager", fullgraph=True)(4)
    while error.__traceback__.tb_next is not None:
        error.__traceback__ = error.__traceback__.tb_next
    assert dict(error.__traceback__.tb_frame.f_locals) == {"x": 4, "doubled": 8}


class NeverMade(Exception):
    def __init__(self):
        raise RuntimeError("cannot be made")


def test_of_an_exception_that_c_code_has_set_and_nobody_can_make():
    set_none = ctypes.pythonapi.PyErr_SetNone

    def failing():
        try:
            set_none(ctypes.py_object(NeverMade))
        except RuntimeError as e:
            frames = [frame.f_code.co_name for frame, _ in traceback.walk_tb(e.__traceback__)]
            return frames, e.__traceback__.tb_frame.f_back.f_code.co_name

    assert stator.compile(failing, backend="eager")() == failing()
