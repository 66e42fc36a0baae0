"""Programs: loads shared, order kept, failures explained, outputs handed over, the strict mode."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

from stator import _core
from stator.guards.guard import Equals, IdIs, Length, Predicate, TypeAttrIs, TypeIs
from stator.guards.program import compile_guards
from stator.guards.source import AttrSource, CallSource, ConstSource, ItemSource, LocalSource

X, Y = LocalSource(0, "x"), LocalSource(1, "y")


class Thing:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def test_each_source_is_loaded_once_and_before_its_first_use():
    layers = AttrSource(X, "layers")
    first = ItemSource(layers, 0)
    program = compile_guards([TypeIs(X, Thing), Length(layers, 2), Equals(first, 1), TypeIs(first, int)], [first, X])
    names = [name for name, *_ in program.instructions]
    assert names == ["LOCAL", "TYPE_IS", "ATTR", "LENGTH", "ITEM", "EQUALS", "TYPE_IS"]
    assert len(program) == 7
    thing = Thing(layers=[1, 2])
    assert program.run(None, (thing,)) == (1, thing)


def test_equal_guards_are_kept_once_in_order():
    program = compile_guards([TypeIs(X, int), Equals(X, 1), TypeIs(X, int, where="later:1"), Equals(X, 1)])
    assert program.guards == (TypeIs(X, int), Equals(X, 1))


def test_order_is_kept_so_a_guard_protects_those_after_it():
    calls = []
    probe = Predicate((X,), lambda x: calls.append(x) or True, "probe")
    program = compile_guards([TypeIs(X, int), probe])
    assert not program.check(None, ("a",))
    assert calls == []
    assert program.check(None, (1,)) and calls == [1]


def test_blocks_are_handed_over_as_one_tuple():
    items = [ItemSource(X, i) for i in range(100)]
    program = compile_guards([Length(X, 100)], [Y, items, (), items[3]])
    data = list(range(100))
    assert program.run(None, (data, "y")) == ("y", tuple(data), (), 3)


def test_outputs_that_cannot_be_loaded_are_a_failure():
    program = compile_guards([], [ItemSource(X, 3)])
    assert not program.check(None, ([],))
    assert "x[3]" in program.failure(None, ([],))


def test_failure_names_guard_actual_and_line():
    program = compile_guards([TypeIs(X, Thing), Equals(AttrSource(X, "n"), 3, where="model.py:12")])
    assert program.failure(None, (Thing(n=3),)) is None
    assert program.failure(None, (Thing(n=4),)) == "x.n == 3: `x.n` was 3, is 4  # model.py:12"
    assert program.failure(None, (Thing(),)) == "x.n == 3: `x.n` was there, and is no more  # model.py:12"
    assert program.failure(None, (5,)).startswith("type(x) is Thing: `x` was a Thing, is an int")


class Misread(Equals):
    """What the core is given to check is not what the reference checks."""

    def lower(self):
        return 0, "another value"


def test_failure_names_the_guard_that_only_the_core_finds_to_fail():
    before = _core.set_strict(False)
    try:
        misread = Misread(AttrSource(X, "n"), 3, where="model.py:12")
        program = compile_guards([TypeIs(X, Thing), misread, TypeIs(Y, int)])
        args = (Thing(n=3), 1)
        assert not program.check(None, args)
        assert program.failure(None, args) == "x.n == 3: only the core fails, at EQUALS  # model.py:12"
        assert program.failure(None, (Thing(n=3), "a")).startswith("type(y) is int")
    finally:
        _core.set_strict(before)


def test_listing():
    program = compile_guards([TypeIs(X, int, where="a.py:1"), Equals(Y, "b")], [X, [Y, X]])
    assert str(program).splitlines() == ["type(x) is int  # a.py:1", "y == 'b'", "-> x", "-> (y, x)"]


def test_a_big_program_owns_and_releases_its_registers():
    sources = [ItemSource(X, i) for i in range(5000)]
    program = compile_guards([TypeIs(s, Thing) for s in sources], [tuple(sources)])
    data = [Thing() for _ in range(5000)]
    before = [sys.getrefcount(thing) for thing in data[:3]]
    for _ in range(3):
        assert program.run(None, (data,)) == (tuple(data),)
    data[4000] = 5
    assert program.instructions[program.run(None, (data,))] == ("TYPE_IS", (4001,), 0, Thing)
    assert [sys.getrefcount(thing) for thing in data[:3]] == before


def test_programs_are_collected():
    class Local:
        pass

    obj = Local()
    program = compile_guards([IdIs(X, obj)], [ConstSource(obj, "obj")])
    obj.program = program
    alive = weakref.ref(obj)
    del obj, program
    gc.collect()
    assert alive() is None


BAD = [
    ([("NO_SUCH", (), 0, None)], [], ValueError),
    ([("TYPE_IS", (0,), 0, int)], [], ValueError),
    ([("LOCAL", (), 0, None), ("TYPE_IS", (), 0, int)], [], ValueError),
    ([("LOCAL", (), 0, None), ("SAME", (0,), 0, None)], [], ValueError),
    ([("LOCAL", (), 0, None)], [1], ValueError),
    ([("LOCAL", (), 0, None)], [(0, 1)], ValueError),
    ([("LOCAL", (), 0, None)], ["a"], TypeError),
    ([("GLOBAL", (), 0, "x")], [], TypeError),
    ([("GLOBAL", (), 0, ([], "x"))], [], TypeError),
    ([("TYPE_ATTR_IS", (), 0, (5, "x", None))], [], TypeError),
    ([("LOCAL", (), 0, None), ("KEYS_ARE", (0,), 0, ["a"])], [], TypeError),
    ([("LOCAL", (), 0, None), ("HAS_KEY", (0,), 0, [])], [], TypeError),
    ([("LOCAL", (), -1, None)], [], ValueError),
    ([5], [], TypeError),
    (["LOCAL"], [], TypeError),
]


@pytest.mark.parametrize(("instructions", "outputs", "error"), BAD, ids=repr)
def test_malformed_programs_are_refused(instructions, outputs, error):
    with pytest.raises(error):
        _core.GuardProgram(instructions, outputs)


@pytest.fixture
def strict():
    before = _core.set_strict(True)
    yield
    _core.set_strict(before)


def test_strict_mode_agrees(strict):
    program = compile_guards([TypeIs(X, int), Equals(X, 3)], [X, (X, X)])
    assert program.check(None, (3,))
    assert not program.check(None, (4,))


def test_strict_mode_notices_a_difference(strict):
    program = compile_guards([Equals(X, 3)], [X])
    program.reference = compile_guards([Equals(X, 4)], [X]).reference
    with pytest.raises(RuntimeError, match=r"disagree: only the reference fails: x == 4: `x` was 4, is 3"):
        program.check(None, (3,))
    with pytest.raises(RuntimeError, match="disagree: only the reference passes"):
        program.check(None, (4,))
    program.reference = compile_guards([Equals(X, 3)], [Y]).reference
    with pytest.raises(RuntimeError, match="y: no argument slot|as another object|only the reference fails"):
        program.check(None, (3,))


def test_strict_mode_does_not_compare_what_is_made_anew(strict):
    program = compile_guards([], [CallSource(lambda x: [x], X, "wrap")])
    assert program.run(None, (3,)) == ([3],)


def test_strict_mode_in_the_hook(strict):
    def f(x):
        return x

    program = compile_guards([TypeIs(X, int)], [X])
    region = _core.Region()
    region.add(f.__code__, _core.Entry(program, lambda x: "target"))
    assert region.call(f, 1) == "target"
    program.reference = compile_guards([TypeIs(X, str)], [X]).reference
    with pytest.raises(RuntimeError, match="disagree"):
        region.call(f, 1)


def test_mutating_the_class_between_checks():
    class Base:
        attribute = 1

    value = Base.__dict__["attribute"]
    program = compile_guards([TypeAttrIs(Base, "attribute", value)])
    for _ in range(1000):  # more changes than the type cache has slots for one class
        assert program.check(None, ())
        Base.attribute = 2
        assert not program.check(None, ())
        Base.attribute = value
