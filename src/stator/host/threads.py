"""Where another thread is, and an exception for it."""

from __future__ import annotations

import ctypes
import sys
from types import FrameType

from stator.host.collector import paused

__all__ = ["frame_of", "frames_of", "raise_in"]


def frame_of(thread: int) -> FrameType | None:
    """The innermost frame that a thread executes, by its ident; None where it has ended."""
    return next(iter(frames_of(thread)), None)


def frames_of(thread: int) -> list[FrameType]:
    """The frames that a thread executes, innermost first.

    CPython makes the object of a frame when it is asked for. Were that to begin a collection, what the collector calls
    could let the other thread go on and leave this very frame, whose memory the object would then show.
    """
    with paused():
        frames = []
        frame = sys._current_frames().get(thread)
        while frame is not None:
            frames.append(frame)
            frame = frame.f_back
    return frames


def raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise an exception in a thread when it next executes Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
