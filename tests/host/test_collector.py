import gc
import threading

import pytest

import stator
from stator.host import collector


def test_collection_is_off_inside_and_on_again_after():
    assert gc.isenabled()
    with collector.paused():
        assert not gc.isenabled()
        with collector.paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_exception_puts_it_back():
    with pytest.raises(KeyError), collector.paused():
        raise KeyError
    assert gc.isenabled()


def test_what_the_program_has_turned_off_stays_off():
    gc.disable()
    try:
        with collector.paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_the_last_of_two_threads_puts_it_back():
    entered, leave = threading.Event(), threading.Event()

    def other():
        with collector.paused():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    entered.wait(10)
    with collector.paused():
        pass
    assert not gc.isenabled()
    leave.set()
    thread.join()
    assert gc.isenabled()


def test_the_compiled_program_finds_it_on():
    @stator.compile(backend="eager")
    def enabled():
        return gc.isenabled()

    assert enabled() is True
    assert enabled() is True
