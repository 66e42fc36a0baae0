"""Locks that existed before: taken with the effects of the program, if what it has read is still so."""

from __future__ import annotations

import math
import threading
from typing import Any

import pytest

import stator
from tests.contention import contended


class Model:
    """What the programs work on."""

    def __init__(self, kind: Any = threading.Lock) -> None:
        self.lock = kind()
        self.other = kind()
        self.ready = False
        self.count = 0
        self.log: list[Any] = []


def compiled(function: Any) -> Any:
    return stator.compile(function, backend="eager", fullgraph=True)


KINDS = pytest.mark.parametrize("kind", [threading.Lock, threading.RLock], ids=["Lock", "RLock"])


def initialise(model: Model) -> bool:
    if model.ready:
        return False
    with model.lock:
        if model.ready:
            return False
        model.log.append("initialised")
        model.ready = True
    return True


def count(model: Model) -> int:
    model.lock.acquire()
    try:
        model.count += 1
        return model.count
    finally:
        model.lock.release()


def nested(model: Model) -> tuple[bool, bool, bool]:
    with model.lock:
        with model.other:
            model.count += 1
            return model.lock.acquire(False), model.other.locked(), True


def twice(model: Model) -> None:
    for _ in range(3):
        with model.lock:
            model.log.append(model.count)
            model.count += 1


def raises(model: Model) -> None:
    with model.lock:
        model.count += 1
        raise ValueError(model.count)


@KINDS
@pytest.mark.parametrize("program", [initialise, count, twice, raises])
def test_programs(program: Any, kind: Any) -> None:
    plain, traced, call = Model(kind), Model(kind), compiled(program)
    for _ in range(3):
        assert outcome(program, plain) == outcome(call, traced)
        assert (plain.ready, plain.count, plain.log) == (traced.ready, traced.count, traced.log)
        assert traced.lock.acquire(False)
        traced.lock.release()


def outcome(function: Any, *args: Any) -> Any:
    try:
        return function(*args)
    except Exception as e:
        return type(e), str(e)


def test_nested() -> None:
    model = Model()
    assert compiled(nested)(model) == (False, True, True)
    assert not model.lock.locked() and not model.other.locked()


@KINDS
def test_held_when_the_function_returns(kind: Any) -> None:
    def take(model: Model) -> None:
        model.lock.acquire()
        if kind is threading.RLock:
            model.lock.acquire()
        model.count += 1

    model = Model(kind)
    compiled(take)(model)
    seen: list[bool] = []
    for _ in range(2 if kind is threading.RLock else 1):
        in_thread(lambda: seen.append(model.lock.acquire(False)))
        model.lock.release()
    in_thread(lambda: seen.append(model.lock.acquire(False)))
    assert seen == [False] * (len(seen) - 1) + [True]


def in_thread(function: Any) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()


def test_what_has_changed_meanwhile_is_seen() -> None:
    model, call = Model(), compiled(count)
    call(model)
    assert contended(model.lock, lambda: call(model), lambda: vars(model).update(count=41)) == 42
    assert model.count == 42 and not model.lock.locked()


def test_a_float_that_has_changed_meanwhile_is_seen() -> None:
    def add(model: Model) -> float:
        with model.lock:
            model.count += 0.5  # type: ignore[assignment]
            return model.count

    model, call = Model(), compiled(add)
    model.count = 0.25  # type: ignore[assignment]
    for _ in range(3):
        call(model)
    assert contended(model.lock, lambda: call(model), lambda: vars(model).update(count=41.0)) == 41.5
    assert model.count == 41.5
    assert math.isnan(contended(model.lock, lambda: call(model), lambda: vars(model).update(count=math.nan)))


def test_another_object_of_the_same_state_is_seen() -> None:
    def look(model: Model) -> list[Any]:
        with model.lock:
            return model.log

    model, call, other = Model(), compiled(look), list[Any]()
    assert call(model) is model.log
    assert contended(model.lock, lambda: call(model), lambda: vars(model).update(log=other)) is other


def test_no_update_is_lost() -> None:
    model, call = Model(), stator.compile(count, backend="eager", dynamic=True)

    def many() -> None:
        for _ in range(300):
            call(model)

    threads = [threading.Thread(target=many) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert model.count == 1200


def test_a_break_inside() -> None:
    def broken(model: Model) -> None:
        with model.lock:
            model.count += 1
            stator.graph_break()
            model.log.append(model.lock.locked())
        model.log.append(model.lock.locked())

    model = Model()
    stator.compile(broken, backend="eager")(model)
    assert (model.count, model.log) == (1, [True, False])


def test_a_lock_that_is_taken_when_another_is_released() -> None:
    def one_after_the_other(model: Model) -> None:
        with model.lock:
            model.count += 1
        with model.other:
            model.count += 1

    model = Model()
    with pytest.raises(stator.errors.GraphBreakError, match=r"lock\.acquire|lock\.__enter__"):
        compiled(one_after_the_other)(model)
    stator.compile(one_after_the_other, backend="eager")(model)
    assert model.count == 2 and not model.lock.locked() and not model.other.locked()


def test_a_change_before_comes_before() -> None:
    def announce(model: Model) -> None:
        model.ready = True
        with model.lock:
            model.count += 1

    model = Model()

    def holder() -> None:
        with model.lock:
            begun.set()
            while not model.ready:
                pass

    begun, call = threading.Event(), stator.compile(announce, backend="eager")
    thread = threading.Thread(target=holder, daemon=True)
    thread.start()
    begun.wait(10)
    in_thread(lambda: call(model))
    thread.join(10)
    assert model.count == 1


def test_prints_inside_and_after(capsys: pytest.CaptureFixture[str]) -> None:
    def tell(model: Model) -> None:
        with model.lock:
            print("inside")
            model.count += 1
        print("after")

    model = Model()
    compiled(tell)(model)
    assert capsys.readouterr().out == "inside\nafter\n" and model.count == 1


def test_standard_library() -> None:
    def use(semaphore: Any, event: Any, condition: Any) -> bool:
        with semaphore:
            event.set()
            with condition:
                condition.notify_all()
        return event.is_set()

    parts = threading.Semaphore(2), threading.Event(), threading.Condition()
    assert stator.compile(use, backend="eager")(*parts) is True
    assert parts[0]._value == 2 and parts[1].is_set()


def test_a_timeout_and_a_question_break() -> None:
    for use in (lambda lock: lock.acquire(False), lambda lock: lock.acquire(timeout=1), lambda lock: lock.locked()):
        with pytest.raises(stator.errors.GraphBreakError, match=r"lock\."):
            compiled(use)(threading.Lock())
