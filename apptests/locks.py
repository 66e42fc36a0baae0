"""Locks, and loops that wait for another thread."""

import _thread
import threading

from apptests.marks import expected_break
from apptests.raising import message


def _refusals(lock):
    said = []
    for args in ((False, 1), (False, 0), (True, -2), (True, -100), (True, 1e300), (True, float("nan")), (True, "x")):
        try:
            lock.acquire(*args)
        except (ValueError, OverflowError, TypeError) as e:
            said.append((type(e), str(e)))
        else:
            raise AssertionError(args)
    return said


def test_arguments_of_acquire():
    return _refusals(threading.Lock())


def test_arguments_of_acquire_of_an_rlock():
    return _refusals(threading.RLock())


def test_arguments_of_acquire_of_a_held_lock():
    lock = _thread.allocate_lock()
    lock.acquire()
    said = _refusals(lock)
    return said, lock.acquire(False), lock.acquire(blocking=False), lock.locked()


def test_acquire_with_a_timeout():
    lock, again = threading.Lock(), threading.RLock()
    return lock.acquire(True, 5), lock.locked(), again.acquire(timeout=0.5), again.acquire(False)


@expected_break("RLock.__new__ of a subclass")
def test_a_class_derived_from_rlock():
    class Named(type(threading.RLock())):
        def __init__(self, *, name):
            super().__init__()
            self.name = name

    lock = Named(name="mine")
    with lock:
        return type(lock).__name__, lock.name, lock.acquire(False)


def test_arguments_of_the_types():
    return message(threading.Lock, 1), message(threading.Lock, a=1)
