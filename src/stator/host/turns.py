"""One thread at a time compiles; others that have to compile as well wait for their turn.

AOTAutograd and Inductor keep in globals of the process what they are at (the transforms that have begun, which methods
of modules are patched), so that two threads which compile at once make each other fail. And where many threads begin
with the same function, all but the first find in their turn that an entry has come to fit. Dynamo has such a lock too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["turn"]


class _Lock:
    """Can be taken again by the thread that has it; in a forked process, whose other threads are gone, none has it."""

    def __init__(self) -> None:
        self.renew()
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.held = threading.RLock()


_LOCK = _Lock()


@contextmanager
def turn() -> Iterator[bool]:
    """While no other thread compiles: whether one did, so that this one had to wait."""
    lock = _LOCK.held
    waited = not lock.acquire(blocking=False)
    if waited:
        lock.acquire()
    try:
        yield waited
    finally:
        lock.release()
