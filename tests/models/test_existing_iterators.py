"""Iterators that were made, and partly consumed, before the compiled function."""

import itertools
from collections import deque
from fractions import Fraction

import pytest

import stator


def compiled(function):
    return stator.compile(function, backend="eager", fullgraph=True)


def take_two(iterator):
    return next(iterator), next(iterator)


def take_all(iterator):
    return [item for item in iterator]  # noqa: C416 (the loop is the point)


def started(iterator, steps):
    for _ in range(steps):
        next(iterator)
    return iterator


class Numbered(enumerate):
    pass


class Loud(map):
    def __next__(self):
        return "loud", super().__next__()


MAKERS = {
    "subclass": lambda: Numbered([1, 2, 3, 4, 5]),
    "overridden __next__": lambda: Loud(str, [1, 2, 3, 4, 5]),
    "list": lambda: iter([1, 2, 3, 4, 5]),
    "tuple": lambda: iter((1, 2, 3, 4, 5)),
    "str": lambda: iter("abcde"),
    "text": lambda: iter("ab\u20acde"),
    "bytes": lambda: iter(b"abcde"),
    "range": lambda: iter(range(2, 30, 5)),
    "long range": lambda: iter(range(1 << 70, (1 << 70) + 6)),
    "reversed list": lambda: reversed([1, 2, 3, 4, 5]),
    "reversed tuple": lambda: reversed((1, 2, 3, 4, 5)),
    "reversed range": lambda: reversed(range(6)),
    "enumerate": lambda: enumerate([1, 2, 3, 4, 5], 7),
    "enumerate of zip": lambda: enumerate(zip("abcde", iter(range(5)))),
    "dict": lambda: iter({1: 2, 3: 4, 5: 6, 7: 8, 9: 0}),
    "enumerate of items": lambda: enumerate({1: 2, 3: 4, 5: 6, 7: 8, 9: 0}.items()),
    "zip": lambda: zip([1, 2, 3, 4, 5], "abcde"),
    "strict zip": lambda: zip([1, 2, 3, 4, 5], "abcde", strict=True),
    "map": lambda: map(str, [1, 2, 3, 4, 5]),
    "filter": lambda: filter(None, [1, 0, 2, 3, 0, 4]),
    "nested": lambda: map(abs, filter(None, iter([1, 0, -2, 3, 0, 4]))),
}
every_kind = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS.keys())


@every_kind
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_advances_by_what_was_taken(make, steps):
    expected, actual = started(make(), steps), started(make(), steps)
    assert compiled(take_two)(actual) == take_two(expected)
    assert list(actual) == list(expected)


@every_kind
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_is_exhausted_for_good(make, steps):
    expected, actual = started(make(), steps), started(make(), steps)
    assert compiled(take_all)(actual) == take_all(expected)
    assert next(actual, "nothing") == "nothing"


@every_kind
def test_position_is_guarded(make):
    function = compiled(take_two)
    expected, actual = make(), make()
    assert function(actual) == take_two(expected)
    assert function(actual) == take_two(expected)
    assert list(actual) == list(expected)


def test_exhausted_list_iterator_does_not_see_new_items():
    items = [1]
    iterator = iter(items)
    assert compiled(take_all)(iterator) == [1]
    items.append(2)
    assert list(iterator) == []


def test_list_behind_the_iterator_is_guarded():
    items = [1, 2, 3]

    def function(iterator):
        return next(iterator)

    run = compiled(function)
    assert run(iter(items)) == 1
    items[0] = 9
    assert run(iter(items)) == 9


def test_two_sources_of_one_iterator():
    def function(first, second):
        return next(first), next(second), next(first)

    iterator = iter([1, 2, 3, 4])
    run = compiled(function)
    assert run(iterator, iterator) == (1, 2, 3)
    assert next(iterator) == 4
    assert run(iter([1, 2, 3]), iter([10, 20])) == (1, 10, 2)


def test_enumerate_and_its_iterator():
    def function(numbered, iterator):
        return next(numbered), next(iterator), next(numbered)

    def run(call):
        iterator = iter([1, 2, 3, 4, 5])
        numbered = enumerate(iterator)
        return call(numbered, iterator), next(iterator), next(numbered)

    assert run(compiled(function)) == run(function)


def test_zip_with_a_new_list():
    def function(iterator):
        return list(zip([10, 20], iterator))

    iterator = iter([1, 2, 3, 4])
    assert compiled(function)(iterator) == [(10, 1), (20, 2)]
    assert list(iterator) == [3, 4]


def test_map_calls_its_function_once_per_item():
    calls = []

    def note(item):
        calls.append(item)
        return item

    numbers = map(note, [1, 2, 3])
    assert compiled(take_two)(numbers) == (1, 2)
    assert calls == [1, 2]
    assert list(numbers) == [3]


@pytest.mark.parametrize("arguments", [(), (3,), (5, -2), (0.5, 0.25), (1 << 70, 3)])
def test_a_count_goes_on(arguments):
    expected, actual = itertools.count(*arguments), itertools.count(*arguments)
    step = compiled(lambda numbers: (next(numbers), [n for n, _ in zip(numbers, "ab")], repr(numbers)))
    for _ in range(4):
        assert step(actual) == (next(expected), [next(expected), next(expected)], repr(next(expected) and expected))
        assert repr(actual) == repr(expected)


def test_a_count_of_other_numbers_breaks_the_graph():
    with pytest.raises(stator.GraphBreakError, match="SB0105"):
        compiled(take_two)(itertools.count(Fraction(1, 2)))


def test_opaque_iterators_break_the_graph():
    class Numbers:
        def __getitem__(self, index):
            return index

    for iterator in (iter(Numbers()), enumerate(iter(Numbers())), iter(deque([1, 2])), iter(int, 1)):
        with pytest.raises(stator.GraphBreakError, match="SB0105"):
            compiled(take_two)(iterator)
        stator.compile(take_two, backend="eager")(iterator)


def test_passing_an_iterator_on_does_not_advance_it():
    def function(iterator):
        return [iterator]

    iterator = iter([1, 2])
    assert compiled(function)(iterator)[0] is iterator
    assert list(iterator) == [1, 2]
