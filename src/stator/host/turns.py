"""One thread at a time compiles; others that have to compile as well wait for their turn.

AOTAutograd and Inductor keep in globals of the process what they are at (the transforms that have begun, which methods
of modules are patched), so that two threads which compile at once make each other fail. And where many threads begin
with the same function, all but the first find in their turn that an entry has come to fit. Dynamo has such a lock too.

Whoever compiles may wait for another thread that does: a backend of the program's may start threads and join them. So
the turn is another's while such code runs (`handed_over`), and nobody waits for it for ever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["LONGEST_WAIT", "handed_over", "turn"]

#: seconds after which a thread goes on without its turn: what it waits for may be waiting for it
LONGEST_WAIT = 300


class _Lock:
    """In a forked process, whose other threads are gone, none has it."""

    def __init__(self) -> None:
        self.renew()
        os.register_at_fork(after_in_child=self.renew)

    def renew(self) -> None:
        self.now = threading.Lock()


class _Mine(threading.local):
    """The lock that this thread has taken."""

    taken: threading.Lock | None = None


_LOCK = _Lock()
_MINE = _Mine()


@contextmanager
def turn() -> Iterator[bool]:
    """While no other thread compiles: whether one did, so that this one had to wait."""
    if _MINE.taken is not None:  # what is compiled meanwhile belongs to it
        yield False
        return
    waited = _take()
    try:
        yield waited
    finally:
        _give()


@contextmanager
def handed_over() -> Iterator[None]:
    """Within a turn, for code of others that may wait for threads which compile: it is theirs meanwhile."""
    had = _MINE.taken is not None
    _give()
    try:
        yield
    finally:
        if had:
            _take()


def _take() -> bool:
    lock = _LOCK.now
    waited = not lock.acquire(blocking=False)
    if not waited or lock.acquire(timeout=LONGEST_WAIT):
        _MINE.taken = lock
    return waited


def _give() -> None:
    lock, _MINE.taken = _MINE.taken, None
    if lock is not None:
        lock.release()
