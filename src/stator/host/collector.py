"""The cyclic garbage collector stands still while a frame is compiled.

A trace makes many small objects that live until its end, and each full collection on the way walks everything that
the program has imported: a third of the time of a first compile, for nothing that could be freed.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from typing import Literal

__all__ = ["before_full", "collect_unseen", "is_watched", "paused", "running"]

_FULL = 2
_before_full: list[Callable[[], object]] = []

_lock = threading.Lock()
_depth = 0
_was_enabled = False


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Automatic collection is off inside, in all threads; the last to leave puts it back as the first found it."""
    _enter()
    try:
        yield
    finally:
        _leave()


@contextlib.contextmanager
def running() -> Iterator[None]:
    """Inside of `paused`, for code of others that may run long: collection is as the program has it."""
    _leave()
    try:
        yield
    finally:
        _enter()


def _enter() -> None:
    global _depth, _was_enabled
    with _lock:
        if not _depth:
            _was_enabled = gc.isenabled()
            gc.disable()
        _depth += 1


def _leave() -> None:
    global _depth
    if _depth == 1 and _was_enabled:
        _collect_young()  # outside of the lock: a finalizer may compile
    with _lock:
        _depth -= 1
        if not _depth and _was_enabled:
            gc.enable()


def _collect_young() -> None:
    """Do now what the next allocation would bring about, but for a full collection.

    That is due when the program has made enough that lives long. A trace, which has let most of its objects go, is no
    reason for it.
    """
    young, middle, _ = gc.get_count()
    most_young, most_middle, _ = gc.get_threshold()
    if young > most_young > 0:
        gc.collect(1 if middle > most_middle else 0)


def before_full(action: Callable[[], object]) -> None:
    """Have something done whenever Python begins a full collection, of its own accord too."""
    if action not in _before_full:
        _before_full.append(action)
    if _tell not in gc.callbacks:  # the program may have emptied the list
        gc.callbacks.append(_tell)


def is_watched() -> bool:
    """Whether somebody other than Stator is called at collections."""
    return any(callback is not _tell for callback in gc.callbacks)


def collect_unseen() -> None:
    """A full collection that nobody but Stator is told of."""
    callbacks = gc.callbacks[:]
    gc.callbacks[:] = [callback for callback in callbacks if callback is _tell]
    gc.collect()
    gc.callbacks[:] = callbacks


def _tell(phase: Literal["start", "stop"], info: dict[str, int]) -> None:
    if phase == "start" and info["generation"] == _FULL:
        for action in _before_full:
            action()
