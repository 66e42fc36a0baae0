"""`__reduce__` and `__setstate__` of iterators: what is made of them goes on where they were."""

import copy
import itertools
import sys
import warnings
from collections import OrderedDict

from apptests.raising import message

QUIET = sys.version_info < (3, 12)
#: the iterators of itertools can be copied
COPIED = sys.version_info < (3, 14)


class Indexed:
    def __getitem__(self, index):
        return "abc"[index]


class Sized(Indexed):
    def __len__(self):
        return 3


def goes_on(make, steps, most=6):
    """What the state of an iterator makes gives what is left of another such iterator."""
    iterator, other = make(), make()
    for _ in range(steps):
        assert next(iterator) == next(other)
    function, args, *state = iterator.__reduce__()
    assert type(args) is tuple
    again = function(*args)
    if state and state[0] is not None:
        again.__setstate__(state[0])
    rest = list(itertools.islice(again, most))
    assert rest == list(itertools.islice(other, most))
    return rest


def test_accumulate():
    if not QUIET:
        return
    assert goes_on(lambda: itertools.accumulate([1, 2, 3]), 1) == [3, 6]
    assert goes_on(lambda: itertools.accumulate([1, 2, 3], initial=5), 0) == [5, 6, 8, 11]
    assert goes_on(lambda: itertools.accumulate([1, 2, 3], lambda a, b: a * b), 0) == [1, 2, 6]
    first = itertools.accumulate([None, 1], lambda a, b: (a, b))
    next(first)
    assert [part if isinstance(part, tuple) else part for part in first.__reduce__()][0] is itertools.islice


def test_cycle():
    if not QUIET:
        return
    for steps in range(6):
        assert len(goes_on(lambda: itertools.cycle("abc"), steps, 7)) == 7
    cycle = itertools.cycle("ab")
    next(cycle)
    saved = cycle.__reduce__()[2][0]
    next(cycle)
    assert saved == ["a", "b"]
    cycle.__setstate__(([1, 2, 3], 1))
    assert [next(cycle) for _ in range(4)] == [1, 2, 3, 1]


def test_arrangements():
    if not QUIET:
        return
    for steps in range(4):
        goes_on(lambda: itertools.product("ab", [1, 2]), steps)
        goes_on(lambda: itertools.permutations("abc", 2), steps)
        goes_on(lambda: itertools.combinations("abcd", 2), steps)
        goes_on(lambda: itertools.combinations_with_replacement("abc", 2), steps)
    done = itertools.combinations("ab", 2)
    assert list(done) == [("a", "b")]
    assert done.__reduce__() == (itertools.combinations, ((), 2))
    product = itertools.product("ab", "cd")
    product.__setstate__((0, 1))
    assert list(product) == [("b", "c"), ("b", "d")]
    assert message(lambda: product.__setstate__((1,))) == ("ValueError", "invalid arguments")
    assert message(lambda: product.__setstate__(1)) == ("ValueError", "invalid arguments")


def test_islice_and_zip_longest():
    if not QUIET:
        return
    for steps in range(3):
        goes_on(lambda: itertools.islice("abcdefgh", 1, None, 2), steps)
        goes_on(lambda: itertools.islice(iter("abcdefgh"), 1, 7, 3), min(steps, 2))
    goes_on(lambda: itertools.zip_longest("ab", "cde", fillvalue=0), 2)
    longest = itertools.zip_longest("a", "bc")
    longest.__setstate__("-")
    assert list(longest) == [("a", "b"), ("-", "c")]
    assert longest.__reduce__()[1][0] == () and longest.__reduce__()[2] == "-"


def test_groupby():
    if not QUIET:
        return
    groups = itertools.groupby("aabbc")
    key, group = next(groups)
    function, args, *state = groups.__reduce__()
    assert function is itertools.groupby and args[1] is None and state == [("a", "a", "a")]
    assert group.__reduce__()[1] == (groups, "a")
    assert [(key, list(items)) for key, items in groups] == [("b", ["b", "b"]), ("c", ["c"])]
    assert group.__reduce__() == (iter, ((),))


def test_builtin_iterators():
    goes_on(lambda: iter(Indexed()), 1)
    goes_on(lambda: iter(Sized()), 2)
    goes_on(lambda: iter(bytearray(b"abc")), 1)
    goes_on(lambda: zip("ab", [1, 2], strict=True), 1)
    pair = zip("ab", [1])
    pair.__setstate__(1)
    assert message(lambda: list(pair)) == ("ValueError", "zip() argument 2 is shorter than argument 1")
    goes_on(lambda: iter(iter([1, 2, 0, 3]).__next__, 0), 1)
    done = iter(int, 0)
    assert list(done) == []
    assert done.__reduce__() == (iter, ((),))


def test_length_hints():
    iterator = iter(Sized())
    assert iterator.__length_hint__() == 3
    next(iterator)
    assert iterator.__length_hint__() == 2
    assert iter(Indexed()).__length_hint__() is NotImplemented
    data = bytearray(b"abc")
    iterator = iter(data)
    next(iterator)
    data += b"d"
    assert iterator.__length_hint__() == 3
    assert list(iterator) == [98, 99, 100]
    assert iterator.__reduce__() == (iter, ((),))


def test_positions():
    for make in (lambda: iter([1, 2, 3]), lambda: iter("abc"), lambda: iter(Sized()), lambda: iter(bytearray(b"abc"))):
        iterator = make()
        iterator.__setstate__(2)
        assert len(list(iterator)) == 1
        iterator = make()
        iterator.__setstate__(-5)
        assert len(list(iterator)) in (0, 3)  # 3.13 takes it for the end of a list
        assert message(iterator.__setstate__, "a") == ("TypeError", "an integer is required")


def test_sets_and_slices():
    assert {1}.__reduce__() == (set, ([1],), None)
    assert frozenset().__reduce__() == (frozenset, ([],), None)
    made = type("Made", (set,), {})([3])
    made.name = "n"
    assert made.__reduce__() == (type(made), ([3],), {"name": "n"})
    assert slice(1, None, 2).__reduce__() == (slice, (1, None, 2))
    assert copy.copy(made) == {3}


def test_repeat_shows_itself():
    assert repr(itertools.repeat("a", 2)) == "repeat('a', 2)"
    assert repr(itertools.repeat([1])) == "repeat([1])"


def test_a_warning_in_later_versions():
    if not COPIED:
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        itertools.cycle("ab").__reduce__()
    assert len(caught) == (not QUIET)


def test_ordered_dicts_that_change_under_an_iterator_at_its_end():
    out = []
    for kind in (iter, reversed, lambda d: iter(d.items())):
        for change in (lambda d: d.update(b=2), lambda d: d.clear(), len):
            for size in (0, 1):
                mapping = OrderedDict.fromkeys("a"[:size])
                found = kind(mapping)
                for _ in range(size):
                    next(found)
                change(mapping)
                out += [next(found, "end"), next(found, "end")]
    assert out == ["end"] * 36, out


def test_iterators_are_not_callable():
    for iterator in (iter(set()), iter([1]), iter({1: 2}.items()), enumerate("ab"), map(len, ["a"]), zip("a", "b")):
        words = f"'{type(iterator).__name__}' object is not callable"
        assert message(iterator, 1) == ("TypeError", words)
        assert message(lambda function: list(map(function, "ab")), iterator) == ("TypeError", words)
