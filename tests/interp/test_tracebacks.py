"""What the frames in a traceback say of themselves, once they have been left."""

import sys
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

    made = finished_frame(closure.__code__, globals(), 0, sys._getframe())
    assert isinstance(made, types.FrameType)
    assert made.f_code is closure.__code__
    assert made.f_globals is globals()
    assert made.f_back is sys._getframe()
    assert dict(made.f_locals) == {}
    assert made.f_lasti == 0
    made.clear()
    with pytest.raises(ValueError, match="no instruction"):
        finished_frame(closure.__code__, globals(), 10_000, None)
    with pytest.raises(TypeError, match="a frame or None"):
        finished_frame(closure.__code__, globals(), 0, 3)  # type: ignore[arg-type]
