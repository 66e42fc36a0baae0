"""Where another thread is, and an exception for it."""

from __future__ import annotations

import ctypes
import sys
from types import FrameType

__all__ = ["frame_of", "raise_in"]


def frame_of(thread: int) -> FrameType | None:
    """The innermost frame that a thread executes, by its ident; None where it has ended."""
    return sys._current_frames().get(thread)


def raise_in(thread: int, error: type[BaseException]) -> None:
    """Raise an exception in a thread when it next executes Python."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
