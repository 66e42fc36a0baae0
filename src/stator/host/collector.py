"""The cyclic garbage collector stands still while a frame is traced.

A trace makes many small objects that live until its end, and each full collection on the way walks everything that
the program has imported: a quarter of the time of a long trace, for nothing that could be freed.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

__all__ = ["paused"]

_lock = threading.Lock()
_depth = 0
_was_enabled = False


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Automatic collection is off inside, in all threads; the last to leave puts it back as the first found it."""
    global _depth, _was_enabled
    with _lock:
        if not _depth:
            _was_enabled = gc.isenabled()
            gc.disable()
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if not _depth and _was_enabled:
                gc.enable()
