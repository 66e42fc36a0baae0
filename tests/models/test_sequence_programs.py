"""Random programs over an existing list or deque: results, errors, final contents and identities are eager's."""

import weakref
from collections import deque

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import stator

small = st.integers(-4, 4)
limits = st.none() | small
slices = st.builds(slice, limits, limits, st.sampled_from([None, 1, 2, -1, -2]))
lists = st.lists(small, max_size=4)

COMMON = [
    st.tuples(st.just("append"), st.tuples(small)),
    st.tuples(st.just("extend"), st.tuples(lists)),
    st.tuples(st.just("insert"), st.tuples(small, small)),
    st.tuples(st.just("pop"), st.just(())),
    st.tuples(st.just("remove"), st.tuples(small)),
    st.tuples(st.just("clear"), st.just(())),
    st.tuples(st.just("reverse"), st.just(())),
    st.tuples(st.just("index"), st.tuples(small) | st.tuples(small, small) | st.tuples(small, small, small)),
    st.tuples(st.just("count"), st.tuples(small)),
    st.tuples(st.just("__getitem__"), st.tuples(small)),
    st.tuples(st.just("__setitem__"), st.tuples(small, small)),
    st.tuples(st.just("__delitem__"), st.tuples(small)),
    st.tuples(st.just("__contains__"), st.tuples(small)),
    st.tuples(st.just("__len__"), st.just(())),
    st.tuples(st.just("__imul__"), st.tuples(st.integers(-1, 2))),
    st.tuples(st.just("__repr__"), st.just(())),
]
LIST_STEPS = st.one_of(
    *COMMON,
    st.tuples(st.just("pop"), st.tuples(small)),
    st.tuples(st.just("sort"), st.just(())),
    st.tuples(st.just("copy"), st.just(())),
    st.tuples(st.just("__getitem__"), st.tuples(slices)),
    st.tuples(st.just("__setitem__"), st.tuples(slices, lists)),
    st.tuples(st.just("__delitem__"), st.tuples(slices)),
    st.tuples(
        st.sampled_from(["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__add__"]), st.tuples(lists)
    ),
)
DEQUE_STEPS = st.one_of(
    *COMMON,
    st.tuples(st.just("popleft"), st.just(())),
    st.tuples(st.just("appendleft"), st.tuples(small)),
    st.tuples(st.just("extendleft"), st.tuples(lists)),
    st.tuples(st.just("rotate"), st.tuples(small)),
    st.tuples(st.just("copy"), st.just(())),
)
quick = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class Numbers(list):
    """A subclass, to be written back by the methods of list itself."""

    def append(self, item):
        super().append(item)


def run(items, steps):
    results = []
    for name, args in steps:
        try:
            result = getattr(items, name)(*args)
        except Exception as e:
            result = (type(e).__name__, str(e))
        results.append("itself" if result is items else result)
    return results


def both(make, steps):
    """What eager and compiled code give, each with the object as it is afterwards."""
    expected, actual = make(), make()
    outcome = run(expected, steps)
    assert stator.compile(run, backend="eager", fullgraph=True)(actual, steps) == outcome
    assert actual == expected
    assert type(actual) is type(expected)


@quick
@given(lists, st.lists(LIST_STEPS, max_size=6))
def test_list(items, steps):
    both(lambda: list(items), steps)


@quick
@given(lists, st.lists(LIST_STEPS, max_size=6))
def test_subclass_of_list(items, steps):
    both(lambda: Numbers(items), steps)


@quick
@given(lists, st.none() | st.integers(0, 4), st.lists(DEQUE_STEPS, max_size=6))
def test_deque(items, limit, steps):
    both(lambda: deque(items, limit), steps)


def test_appending_needs_no_guard_on_the_length():
    def note(items, item):
        items.append(item)
        items += [item, item]

    run_note = stator.compile(note, backend="eager", fullgraph=True)
    items = []
    for number in (1, 1, 1):
        run_note(items, number)
    assert items == [1] * 9
    assert stator.stats().recompiles == 0


def test_reading_an_item_needs_no_guard_on_the_length():
    def first(items):
        return items[0]

    run_first = stator.compile(first, backend="eager", fullgraph=True)
    assert [run_first([1]), run_first([1, 2]), run_first((1, 2, 3)), run_first((1,))] == [1, 1, 1, 1]


# -- what waits at the ends of existing ones ---------------------------------------------------------------------------

KINDS = st.sampled_from([list, Numbers, tuple, deque, lambda items: deque(items, 3), lambda items: deque(items, 0)])
#: which of the two, what is done, and with what: `other` is the other one, `same` the one itself
GROWING = st.one_of(
    st.tuples(
        st.integers(0, 1),
        st.sampled_from(["extend", "__iadd__", "extendleft"]),
        st.sampled_from(["other", "same"]) | lists,
    ),
    st.tuples(st.integers(0, 1), st.sampled_from(["append", "appendleft", "pop", "__getitem__", "remove"]), small),
    st.tuples(st.integers(0, 1), st.just("insert"), st.just(0)),
    st.tuples(st.integers(0, 1), st.sampled_from(["__len__", "clear", "reverse", "copy"]), st.none()),
)


def grow(pair, steps):
    results = []
    for which, name, arg in steps:
        items, others = pair[which], pair[1 - which]
        args = {"other": (others,), "same": (items,)}.get(arg if isinstance(arg, str) else None, (arg,))
        args = () if arg is None else (0, 7) if name == "insert" else args
        try:
            result = getattr(items, name)(*args)
        except Exception as e:
            result = (type(e).__name__, str(e))
        results.append("itself" if result is items else result)
    return results


@quick
@given(
    KINDS,
    KINDS,
    st.lists(st.tuples(lists, lists, st.booleans()), min_size=2, max_size=3),
    st.lists(GROWING, max_size=6),
)
def test_two_that_grow(first, second, contents, steps):
    """One entry, or several, for other lengths, and for two names of one object."""
    compiled = stator.compile(grow, backend="eager", fullgraph=True)
    for left, right, is_one in contents:
        pairs = []
        for function in (grow, compiled):
            items = first(left)
            pairs.append((items, items if is_one else second(right)))
            pairs.append(function(pairs[-1], steps))
        expected, outcome, actual, found = pairs
        assert found == outcome
        assert [*map(list, actual)] == [*map(list, expected)]
        assert [*map(type, actual)] == [*map(type, expected)]


def ends(items, new):
    items.extend(new)
    items += new
    items.insert(0, 5)


def both_ends(items, new):
    items.extend(new)
    items.appendleft(5)
    return items[-1] if items.append(7) else None


def the_last(items, new):
    items.append(new)
    return items[-1] is new


GROWS = {
    "a list": (ends, list, list),
    "a list, by a deque": (ends, list, deque),
    "a subclass, by a tuple": (ends, Numbers, tuple),
    "a deque": (both_ends, deque, list),
    "a deque, by a deque": (both_ends, deque, deque),
    "the last of a limited deque": (the_last, lambda items: deque(items, 3), list),
}


@pytest.mark.parametrize("name", GROWS)
def test_what_is_only_put_at_the_ends_needs_no_guard_on_lengths(name):
    function, kind, new_kind = GROWS[name]
    compiled = stator.compile(function, backend="eager", fullgraph=True)
    for count in (2, 5, 1, 0, 9):
        items, new = kind(range(count)), new_kind(range(2 * count, 3 * count))
        expected = kind(range(count))
        assert compiled(items, new) == function(expected, new)
        assert items == expected
    assert stator.stats().recompiles == 0


def test_items_are_those_from_before_a_change_of_what_has_them():
    """What waits is asked for when the other list changes, in whatever way."""

    def moved(items, new, others):
        items.extend(new)
        new.append(1)
        others += new
        new.insert(0, 2)
        del new[-1]
        return len(items), items[-1]

    compiled = stator.compile(moved, backend="eager", fullgraph=True)
    for new in ([3], [4, 5], [6, 7, 8]):
        found, expected = ([], [*new], [9]), ([], [*new], [9])
        assert compiled(*found) == moved(*expected)
        assert found == expected


@pytest.mark.parametrize("counts", [(0, 1, 0, 2), (2, 0, 1, 3), (3, 2, 1, 0), (0, 0, 1, 3)])
def test_that_there_is_no_such_item_from_the_end_is_guarded(counts):
    """Also where the length has varied, and is known no more."""

    def last_but_one(items):
        try:
            return items[-2]
        except IndexError:
            return "none"

    compiled = stator.compile(last_but_one, backend="eager", fullgraph=True)
    assert [compiled(list(range(count))) for count in counts] == [last_but_one(list(range(count))) for count in counts]


def test_an_object_that_waits_in_a_list_is_alive():
    class Thing:
        pass

    def kept(items):
        thing = Thing()
        reference = weakref.ref(thing)
        items.append(thing)
        del thing
        return reference() is not None

    items = []
    assert stator.compile(kept, backend="eager", fullgraph=True)(items) and type(items[0]) is Thing
