"""What an entry knows by identity it does not keep alive."""

from __future__ import annotations

import weakref

import pytest

import stator
from stator.guards.guard import IdIs, TypeIs, WeakIdIs, identity_guard
from stator.guards.program import compile_guards
from stator.guards.source import LocalSource

X = LocalSource(0, "x")


class Thing: ...


class Closing:
    def __init__(self, log: list[str]) -> None:
        self.log = log

    def __del__(self) -> None:
        self.log.append("closed")


def test_what_programs_know_by_name_is_held() -> None:
    assert all(type(identity_guard(X, obj)) is IdIs for obj in (None, Thing, len, stator, test_gone, [1]))
    assert type(identity_guard(X, Thing())) is WeakIdIs


def test_gone() -> None:
    thing = Thing()
    program = compile_guards([identity_guard(X, thing)])
    assert program.check(None, (thing,))
    assert "Thing" in str(program)
    del thing
    assert str(program) == "x is an object that has ended"
    assert not any(program.check(None, (Thing(),)) for _ in range(100))  # one of them at the old address
    assert not program.check(None, (None,))
    failure = program.failure(None, (None,))
    assert failure is not None and "an object that has ended" in failure


@pytest.mark.parametrize("passes", [1, 10])
def test_another_at_the_old_address(passes: int, revalidation: None) -> None:
    """The shortcut writes down the addresses of arguments."""
    things = [Thing()]
    program = compile_guards([identity_guard(X, things[0]), TypeIs(X, Thing)])
    for _ in range(passes):
        assert program.check(None, (things[0],))
    address = id(things.pop())
    for _ in range(1000):
        other = Thing()
        assert not program.check(None, (other,))
        if id(other) == address:
            break
    else:
        pytest.skip("the allocator gave the address to nobody")


def test_the_end_of_an_argument_comes_in_time() -> None:
    @stator.compile
    def text(thing: Closing) -> bool:
        return repr(thing) == repr(thing)

    log: list[str] = []
    for count in (1, 2, 3):
        thing = Closing(log)
        reference = weakref.ref(thing)
        assert text(thing)
        del thing
        assert reference() is None
        assert log == ["closed"] * count
