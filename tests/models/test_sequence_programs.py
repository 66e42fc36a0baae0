"""Random programs over an existing list or deque: results, errors, final contents and identities are eager's."""

from collections import deque

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
