"""A second thread that holds a lock when the program wants it."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Any


def contended(lock: Any, call: Callable[[], Any], change: Callable[[], None]) -> Any:
    """What `call()` gives in a thread that waits for the lock, while `change()` is made under it."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(call()))
    with lock:
        thread.start()
        while not _waits(thread):
            assert thread.is_alive()
        change()
    thread.join(30)
    assert not thread.is_alive()
    return found[0]


def _waits(thread: threading.Thread) -> bool:
    """Whether generated code in the thread has come to wait for its locks."""
    time.sleep(0.02)
    frame = sys._current_frames().get(thread.ident or 0)
    return frame is not None and frame.f_code.co_name == "taken"
