"""Frames of other threads."""

import gc
import sys
import threading
from collections.abc import Callable

import pytest

from stator.host.threads import frame_of, frames_of


@pytest.fixture
def waiting():
    """The ident of a thread that waits in 50 calls of a function."""
    ready, leave = threading.Event(), threading.Event()

    def descend(depth: int) -> None:
        if depth:
            return descend(depth - 1)
        ready.set()
        leave.wait(10)

    thread = threading.Thread(target=descend, args=(50,))
    thread.start()
    ready.wait(10)
    yield thread.ident
    leave.set()
    thread.join()


def test_frames_are_innermost_first(waiting: int) -> None:
    frames = frames_of(waiting)
    assert frames[0] is frame_of(waiting)
    assert [frame.f_back for frame in frames] == [*frames[1:], None]
    assert sum(frame.f_code.co_name == "descend" for frame in frames) == 51


def test_a_thread_that_has_ended_has_none() -> None:
    thread = threading.Thread(target=int)
    thread.start()
    thread.join()
    assert frames_of(thread.ident or 0) == []
    assert frame_of(thread.ident or 0) is None


@pytest.mark.parametrize("look", [frame_of, frames_of])
def test_no_collection_begins_while_frames_are_looked_at(waiting: int, look: Callable[[int], object]) -> None:
    """A collection there let the other thread go on and leave the frame: a segmentation fault."""
    within: list[list[str]] = []

    def note(phase: str, info: object) -> None:
        if phase == "start":
            within.append([*sys._getframe(1).f_locals])

    most = gc.get_threshold()
    gc.callbacks.append(note)
    gc.set_threshold(1)
    try:
        look(waiting)
    finally:
        gc.set_threshold(*most)
        gc.callbacks.remove(note)
    assert within  # there have been some
    assert ["thread", "frames", "frame"] not in within and ["thread", "frames"] not in within
