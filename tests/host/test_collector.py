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


def test_code_of_others_runs_as_the_program_has_it():
    with collector.paused():
        with collector.running():
            assert gc.isenabled()
        assert not gc.isenabled()
    gc.disable()
    try:
        with collector.paused(), collector.running():
            assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_ends_without_a_full_collection():
    generations = []

    def note(phase, info):
        if phase == "start":
            generations.append(info["generation"])

    most = gc.get_threshold()
    gc.set_threshold(100, 1, 1)  # the next collection but two is a full one
    gc.callbacks.append(note)
    try:
        kept = []
        for _ in range(6):
            with collector.paused():
                kept += [[] for _ in range(1_000)]
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*most)
    assert generations
    assert 2 not in generations


def test_a_finalizer_may_compile():
    class Node:
        def __del__(self):
            answers.append(stator.compile(lambda x: x + 1)(1))

    answers = []
    with collector.paused():
        node = Node()
        node.itself = node
        del node
        kept = [[] for _ in range(10_000)]  # more than a young collection waits for
    assert answers == [2]
    assert kept


def test_what_is_called_at_full_collections_is_nobody_of_the_programs():
    done = []
    collector.before_full(lambda: done.append(gc.callbacks[:]))
    try:
        assert not collector.is_watched()
        gc.collect(1)
        assert not done
        collector.collect_unseen()
        assert len(done) == 1
        gc.callbacks.append(lambda phase, info: done.append(phase))
        assert collector.is_watched()
        collector.collect_unseen()
        assert len(done) == 2 and len(gc.callbacks) == 2
    finally:
        collector._before_full.pop()
