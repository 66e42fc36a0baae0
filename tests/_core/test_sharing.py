"""Entries of one bucket share the walk over what their programs have in common, and nothing else changes by it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stator import _core
from stator.guards.guard import Equals, Length, Predicate, TypeIs
from stator.guards.program import compile_guards
from stator.guards.source import AttrSource, ItemSource, LocalSource

X, N = LocalSource(0, "x"), LocalSource(1, "n")


class Thing:
    pass


def function(x, n):
    return (x, n)


def run(programs, *args):
    """The number of the entry that runs; the last program is the newest."""
    region = _core.Region()
    for number, program in enumerate(programs):
        region.add(function.__code__, _core.Entry(program, lambda *outputs, number=number: (number, outputs)))
    return _core.Compiled(function, region)(*args)


@pytest.fixture(autouse=True)
def strict():
    before = _core.set_strict(True)
    yield
    _core.set_strict(before)


def test_a_common_prefix_is_checked_once():
    _core.set_strict(False)  # the reference would call the predicate too
    calls = []

    def note(x):
        calls.append(x)
        return True

    thing = Thing()
    thing.items = ["a", "b"]
    items = AttrSource(X, "items")
    common = [TypeIs(X, Thing), Length(items, 2), Predicate((ItemSource(items, 0),), note, "note")]
    programs = [compile_guards([*common, Equals(N, number)], [ItemSource(items, 1), N]) for number in range(8)]
    for number in range(8):
        calls.clear()
        assert run(programs, thing, number) == (number, ("b", number))
        assert calls == ["a"]
    calls.clear()
    assert run(programs, thing, 99) == (thing, 99)
    assert len(calls) == 1 + 1  # once more on the way through the hook


def test_a_failure_in_the_common_prefix_fails_all_without_another_look():
    _core.set_strict(False)
    calls = []
    common = [Predicate((X,), lambda x: calls.append(x), "never")]
    programs = [compile_guards([*common, Equals(N, number)]) for number in range(5)]
    assert run(programs, 1, 2) == (1, 2)
    assert calls == [1, 1]


GUARDS = [
    TypeIs(X, Thing),
    TypeIs(AttrSource(X, "a"), int),
    Equals(AttrSource(X, "a"), 1),
    Equals(AttrSource(X, "a"), 2),
    Equals(AttrSource(X, "b"), 1),
    Equals(ItemSource(AttrSource(X, "c"), 0), 1),
    Equals(ItemSource(AttrSource(X, "c"), 1), 1),
    Equals(N, 0),
    Equals(N, 1),
    Length(AttrSource(X, "c"), 2),
    Predicate((X, N), lambda x, n: n < 1, "n < 1"),
]
OUTPUTS = [X, N, AttrSource(X, "b"), ItemSource(AttrSource(X, "c"), 1)]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(st.lists(st.sampled_from(GUARDS), max_size=6), st.lists(st.sampled_from(OUTPUTS), max_size=2)),
        max_size=6,
    ),
    st.fixed_dictionaries(
        {}, optional={"a": st.integers(1, 2), "b": st.integers(1, 2), "c": st.lists(st.integers(0, 1), max_size=3)}
    ),
    st.integers(0, 1),
)
def test_the_newest_program_that_passes_runs(shapes, attributes, n):
    thing = Thing()
    thing.__dict__.update(attributes)
    programs = [compile_guards(guards, outputs) for guards, outputs in shapes]
    alone = [program.run(function, (thing, n)) for program in programs]
    expected = next(
        ((number, outputs) for number, outputs in reversed(list(enumerate(alone))) if isinstance(outputs, tuple)),
        (thing, n),
    )
    assert run(programs, thing, n) == expected


def test_entries_added_while_guards_run():
    region = _core.Region()

    def add_more(x):
        region.add(function.__code__, _core.Entry(compile_guards([]), lambda: "added"))
        return False

    program = compile_guards([Predicate((X,), add_more, "add")])
    region.add(function.__code__, _core.Entry(program, lambda: "first"))
    _core.set_strict(False)
    compiled = _core.Compiled(function, region)
    assert compiled(1, 2) == "added"  # found by the hook's look-up, which comes after the direct one


def test_entries_cleared_while_guards_run():
    region = _core.Region()
    _core.set_strict(False)
    program = compile_guards([Predicate((X,), lambda x: region.clear() or True, "clear")], [X])
    region.add(function.__code__, _core.Entry(program, lambda x: ("ran", x)))
    assert _core.Compiled(function, region)(1, 2) == ("ran", 1)
    assert region.entries(function.__code__) == []
