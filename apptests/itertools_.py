"""itertools, the builtin iterators, and iterators that outlive a loop."""

import itertools
import operator
from itertools import chain, count, cycle, groupby, islice, repeat, tee

from apptests.raising import message


class Countdown:
    """An iterator written in Python."""

    def __init__(self, start):
        self.start = start

    def __iter__(self):
        return self

    def __next__(self):
        if self.start <= 0:
            raise StopIteration
        self.start -= 1
        return self.start


class Items:
    """Iterable by `__getitem__` alone."""

    def __init__(self, *items):
        self.items = items

    def __getitem__(self, index):
        return self.items[index]


class Backwards:
    def __len__(self):
        return 3

    def __getitem__(self, index):
        return index * 10


def test_list_iterator():
    items = [1, 2]
    iterator = iter(items)
    assert iter(iterator) is iterator
    assert next(iterator) == 1
    items.append(3)
    assert list(iterator) == [2, 3]
    items.append(4)
    assert list(iterator) == []
    assert next(iterator, "end") == "end"
    assert message(next, iterator) == ("StopIteration", "")


def test_tuple_str_bytes_range_iterators():
    assert list(iter((1, 2))) == [1, 2]
    assert list(iter("aé€")) == ["a", "é", "€"]
    assert list(iter(b"ab")) == [97, 98]
    assert list(iter(range(3, 0, -1))) == [3, 2, 1]
    iterator = iter(range(10**30, 10**30 + 2))
    assert next(iterator) == 10**30
    assert list(iterator) == [10**30 + 1]


def test_reversed():
    assert list(reversed([1, 2, 3])) == [3, 2, 1]
    assert list(reversed((1, 2))) == [2, 1]
    assert list(reversed("ab")) == ["b", "a"]
    assert list(reversed(range(3))) == [2, 1, 0]
    assert list(reversed(Backwards())) == [20, 10, 0]
    assert message(reversed, {1}) == ("TypeError", "'set' object is not reversible")


def test_own_iterators():
    assert list(Countdown(3)) == [2, 1, 0]
    assert list(Items("a", "b")) == ["a", "b"]
    first, *rest = Items(1, 2, 3)
    assert (first, rest) == (1, [2, 3])
    assert 3 in Items(1, 3)
    assert sum(Countdown(4)) == 6
    assert message(iter, 3) == ("TypeError", "'int' object is not iterable")


def test_callable_iterator():
    numbers = [3, 2, 1, 0]
    assert list(iter(numbers.pop, 2)) == [0, 1]
    assert numbers == [3]


def test_enumerate_zip_map_filter():
    assert list(enumerate("ab", 5)) == [(5, "a"), (6, "b")]
    assert list(zip([1, 2, 3], "ab")) == [(1, "a"), (2, "b")]
    assert list(zip()) == []
    assert list(map(lambda a, b: a + b, [1, 2], [10, 20, 30])) == [11, 22]
    assert list(filter(None, [0, 1, "", "a"])) == [1, "a"]
    assert list(filter(lambda v: v % 2, range(5))) == [1, 3]
    expected = ("ValueError", "zip() argument 2 is shorter than argument 1")
    assert message(list, zip([1, 2], [3], strict=True)) == expected
    expected = ("ValueError", "zip() argument 3 is longer than arguments 1-2")
    assert message(list, zip([1], [2], [3, 4], strict=True)) == expected


def test_laziness():
    seen = []

    def note(value):
        seen.append(value)
        return value

    numbers = map(note, [1, 2, 3])
    assert seen == []
    assert next(numbers) == 1
    assert seen == [1]
    pairs = zip([1, 2, 3], map(note, "xy"))
    assert next(pairs) == (1, "x")
    assert seen == [1, "x"]
    assert list(pairs) == [(2, "y")]


def test_shared_iterators():
    iterator = iter([1, 2, 3, 4, 5])
    assert list(zip(iterator, iterator)) == [(1, 2), (3, 4)]
    assert list(iterator) == []
    numbers = iter(range(5))
    for number in numbers:
        if number == 2:
            break
    assert list(numbers) == [3, 4]


def test_count_cycle_repeat():
    numbers = count(3)
    assert [next(numbers) for _ in range(3)] == [3, 4, 5]
    assert repr(numbers) == "count(6)"
    assert list(zip(count(0.5, 2), "ab")) == [(0.5, "a"), (2.5, "b")]
    again = cycle("ab")
    assert [next(again) for _ in range(5)] == ["a", "b", "a", "b", "a"]
    assert list(cycle([])) == []
    assert list(repeat(1, 3)) == [1, 1, 1]
    assert list(repeat(1, -3)) == []
    assert list(zip("ab", repeat(0))) == [("a", 0), ("b", 0)]
    assert message(count, "a") == ("TypeError", "a number is required")


def test_chain():
    assert list(chain([1], "a", (2,))) == [1, "a", 2]
    assert list(chain()) == []
    assert list(chain.from_iterable([[1], [2, 3]])) == [1, 2, 3]
    broken = chain([1], 5)
    assert next(broken) == 1
    assert message(next, broken) == ("TypeError", "'int' object is not iterable")
    assert list(broken) == []


def test_islice():
    assert list(islice("abcdef", 2)) == ["a", "b"]
    assert list(islice("abcdef", 2, 4)) == ["c", "d"]
    assert list(islice("abcdef", 1, None, 2)) == ["b", "d", "f"]
    iterator = iter(range(10))
    assert list(islice(iterator, 1, 5, 3)) == [1, 4]
    assert next(iterator) == 5
    expected = "Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize."
    assert message(islice, "a", -1) == ("ValueError", expected)
    assert message(islice, "a", 0, 1, 0) == ("ValueError", "Step for islice() must be a positive integer or None.")


def test_with_a_function():
    assert list(itertools.starmap(pow, [(2, 3), (3, 2)])) == [8, 9]
    assert list(itertools.takewhile(lambda v: v < 3, [1, 2, 3, 1])) == [1, 2]
    assert list(itertools.dropwhile(lambda v: v < 3, [1, 2, 3, 1])) == [3, 1]
    assert list(itertools.filterfalse(lambda v: v % 2, range(5))) == [0, 2, 4]
    assert list(itertools.filterfalse(None, [0, 1, ""])) == [0, ""]
    assert list(itertools.accumulate([1, 2, 3])) == [1, 3, 6]
    assert list(itertools.accumulate([1, 2, 3], operator.mul, initial=10)) == [10, 10, 20, 60]
    assert list(itertools.accumulate([])) == []


def test_in_step():
    assert list(itertools.compress("abcd", [1, 0, 1])) == ["a", "c"]
    assert list(itertools.pairwise("abc")) == [("a", "b"), ("b", "c")]
    assert list(itertools.pairwise("a")) == []
    assert list(itertools.zip_longest("ab", [1], fillvalue=0)) == [("a", 1), ("b", 0)]
    assert list(itertools.zip_longest()) == []


def test_arrangements():
    assert list(itertools.product("ab", [1, 2])) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert list(itertools.product([0, 1], repeat=2)) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert list(itertools.product()) == [()]
    assert list(itertools.permutations([1, 2, 3], 2)) == [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]
    assert list(itertools.combinations("abc", 2)) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert list(itertools.combinations_with_replacement("ab", 2)) == [("a", "a"), ("a", "b"), ("b", "b")]
    assert message(itertools.combinations, [1], -1) == ("ValueError", "r must be non-negative")


def test_groupby():
    assert [(k, list(g)) for k, g in groupby("aabca")] == [
        ("a", ["a", "a"]),
        ("b", ["b"]),
        ("c", ["c"]),
        ("a", ["a"]),
    ]
    assert [k for k, _ in groupby([1, 3, 2, 4], key=lambda v: v % 2)] == [1, 0]
    groups = groupby([1, 1, 2])
    _, ones = next(groups)
    assert next(ones) == 1
    _, twos = next(groups)
    assert list(ones) == []
    assert list(twos) == [2]


def test_tee():
    first, second = tee(iter([1, 2, 3]))
    assert next(first) == 1
    assert list(second) == [1, 2, 3]
    third = first.__copy__()
    assert list(first) == [2, 3]
    assert list(third) == [2, 3]
    assert tee([], 0) == ()


def test_unfinished_iterators_survive():
    """With a break anywhere, each of these is rebuilt in the middle of its work."""
    iterators = [
        enumerate("abc"),
        zip([1, 2, 3], "abc"),
        map(str, [1, 2, 3]),
        filter(None, [1, 2, 3]),
        cycle("ab"),
        count(2, 3),
        repeat("r", 4),
        chain([1, 2], [3]),
        islice("abcdef", 1, 5, 2),
        itertools.accumulate([1, 2, 3]),
        itertools.pairwise("abcd"),
        itertools.dropwhile(lambda v: v < 1, [0, 1, 2, 0]),
        itertools.takewhile(lambda v: v < 9, [0, 1, 2, 9]),
        itertools.zip_longest("a", "bcd"),
        itertools.product("ab", "cd"),
        itertools.permutations("abc", 2),
        reversed([1, 2, 3]),
        iter("abc"),
        iter((1, 2, 3)),
        iter(range(3)),
        iter(Items(1, 2, 3)),
    ]
    first = [next(iterator) for iterator in iterators]
    second = [next(iterator) for iterator in iterators]
    assert first == [
        *((0, "a"), (1, "a"), "1", 1, "a", 2, "r", 1, "b", 1, ("a", "b"), 1, 0, ("a", "b"), ("a", "c"), ("a", "b")),
        *(3, "a", 1, 0, 1),
    ]
    assert second == [
        *((1, "b"), (2, "b"), "2", 2, "b", 5, "r", 2, "d", 3, ("b", "c"), 2, 1, (None, "c"), ("a", "d"), ("a", "c")),
        *(2, "b", 2, 1, 2),
    ]


def test_unfinished_groups_survive():
    groups = groupby([1, 1, 2, 2, 3])
    key, group = next(groups)
    head = next(group)
    rest = list(group)
    following, other = next(groups)
    assert (key, head, rest, following) == (1, 1, [1], 2)
    assert list(other) == [2, 2]
    assert [k for k, _ in groups] == [3]


def test_unfinished_tee_survives():
    first, second = tee(iter([1, 2, 3]))
    head = next(first)
    assert head == 1
    assert next(first) == 2
    assert next(second) == 1
    assert list(first) == [3]
    assert list(second) == [2, 3]


SHARED = [1, 2, 3]
POSITION = iter(SHARED)


def test_existing_iterator():
    global POSITION
    POSITION = iter(SHARED)
    assert next(POSITION) == 1
    assert [*POSITION] == [2, 3]
    assert next(POSITION, None) is None


def test_accumulated_none():
    running = itertools.accumulate([None, None, None], operator.is_)
    first = next(running)
    return first, list(running)


def test_tee_entered_again():
    class Source:
        first = True

        def __iter__(self):
            return self

        def __next__(self):
            first, self.first = self.first, False
            return next(b) if first else 1

    a, b = itertools.tee(Source())
    try:
        next(a)
    except RuntimeError as e:
        assert "tee" in str(e)
    else:
        raise AssertionError
