"""Lists: every method, slices, comparisons, errors, and lists that existed before."""

import sys

from apptests.raising import message

HISTORY = [1, 2, 3]
NESTED = [[1], [2, 3], []]


class Stack(list):
    """A subclass with an attribute and a method of its own."""

    def __init__(self, items=(), label="stack"):
        super().__init__(items)
        self.label = label

    def push(self, item):
        self.append(item)
        return self


class Noisy:
    """Equal to everything, and remembers being asked."""

    def __init__(self):
        self.asked = []

    def __eq__(self, other):
        self.asked.append(other)
        return other == 2

    __hash__ = None


def test_making():
    assert list() == []
    assert list("abc") == ["a", "b", "c"]
    assert list((1, 2)) == [1, 2]
    assert list({1: 2}) == [1]
    assert [*range(3), *"ab"] == [0, 1, 2, "a", "b"]
    assert list([1, 2]) == [1, 2]
    same = [1]
    assert list(same) is not same


def test_growing():
    items = [1]
    assert items.append(2) is None
    items.extend((3, 4))
    items.extend(x for x in (5, 6))
    items.insert(0, 0)
    items.insert(-1, 99)
    items.insert(100, 7)
    items += [8]
    assert items == [0, 1, 2, 3, 4, 5, 99, 6, 7, 8]
    other = items
    other *= 2
    assert items is other
    assert len(items) == 20
    items.extend(items)
    assert len(items) == 40


def test_shrinking():
    items = list(range(8))
    assert items.pop() == 7
    assert items.pop(0) == 0
    assert items.pop(-2) == 5
    items.remove(3)
    del items[0]
    assert items == [2, 4, 6]
    del items[::2]
    assert items == [4]
    items.clear()
    assert items == []


def test_indexing():
    items = [10, 20, 30, 40]
    assert items[0] == 10
    assert items[-1] == 40
    assert items[True] == 20
    assert items[1:3] == [20, 30]
    assert items[::-1] == [40, 30, 20, 10]
    assert items[-100:100] == items
    assert items[5:] == []
    items[1] = 21
    items[-1] = 41
    items[1:2] = [1, 2, 3]
    assert items == [10, 1, 2, 3, 30, 41]
    items[::3] = "ab"
    assert items == ["a", 1, 2, "b", 30, 41]
    items[2:2] = (x for x in "xy")
    assert items == ["a", 1, "x", "y", 2, "b", 30, 41]
    items[:] = items[4:]
    assert items == [2, "b", 30, 41]


def test_slices_of_lists_with_index_objects():
    class Three:
        def __index__(self):
            return 3

    items = list(range(6))
    assert items[Three()] == 3
    assert items[: Three()] == [0, 1, 2]
    assert items * Three() == items + items + items


def test_searching():
    items = [1, 2, 3, 2]
    assert 2 in items
    assert 9 not in items
    assert items.index(2) == 1
    assert items.index(2, 2) == 3
    assert items.index(2, -1) == 3
    assert items.count(2) == 2
    assert items.copy() == items
    assert items.copy() is not items


def test_search_asks_each_item_once():
    noisy = Noisy()
    assert [1, 2, 3].index(noisy) == 1
    assert noisy.asked == [1, 2]
    noisy = Noisy()
    assert [1, 2, 2].count(noisy) == 2
    assert noisy.asked == [1, 2, 2]


def test_comparing():
    assert [1, 2] == [1, 2]
    assert [1, 2] != [1, 2, 3]
    assert [1, 2] < [1, 3]
    assert [1, 2] < [1, 2, 0]
    assert not [2] < [1, 9]
    assert [] <= []
    assert [3] >= [2, 9]
    assert [1] != (1,)
    assert not [1] == (1,)
    nan = float("nan")
    assert [nan] == [nan]
    assert [nan] != [float("nan")]


def test_arithmetic():
    assert [1] + [2] == [1, 2]
    assert [1] * 3 == [1, 1, 1]
    assert 2 * [1, 2] == [1, 2, 1, 2]
    assert [1] * -1 == []
    inner = []
    outer = [inner] * 2
    outer[0].append(1)
    assert outer == [[1], [1]]


def test_repr():
    assert repr([1, "a", [None]]) == "[1, 'a', [None]]"
    items = [1]
    items.append(items)
    assert repr(items) == "[1, [...]]"
    assert str([]) == "[]"
    assert f"{[1.5]}" == "[1.5]"


def test_errors():
    items = [1]
    assert message(items.pop, 5) == ("IndexError", "pop index out of range")
    assert message([].pop) == ("IndexError", "pop from empty list")
    assert message(items.remove, 5) == ("ValueError", "list.remove(x): x not in list")
    assert message(lambda: items[1]) == ("IndexError", "list index out of range")
    assert message(lambda: items["a"]) == ("TypeError", "list indices must be integers or slices, not str")
    shown = sys.version_info < (3, 14)
    assert message(items.index, 7) == ("ValueError", "7 is not in list" if shown else "list.index(x): x not in list")
    assert message(items.__setitem__, 4, 1) == ("IndexError", "list assignment index out of range")
    assert message(lambda: items + (1,)) == ("TypeError", 'can only concatenate list (not "tuple") to list')
    assert message(lambda: items * "a") == ("TypeError", "can't multiply sequence by non-int of type 'str'")
    assert message(lambda: items < 1) == ("TypeError", "'<' not supported between instances of 'list' and 'int'")
    assert message(items.extend, 3) == ("TypeError", "'int' object is not iterable")
    assert message(items.append) == ("TypeError", "list.append() takes exactly one argument (0 given)")
    assert message(lambda: items[::0]) == ("ValueError", "slice step cannot be zero")
    assert message(hash, items) == ("TypeError", "unhashable type: 'list'")


def test_extend_keeps_what_came_before_an_exception():
    def numbers():
        yield 1
        yield 2
        raise KeyError("enough")

    items = []
    try:
        items.extend(numbers())
    except KeyError:
        pass
    assert items == [1, 2]


def test_extended_slice_of_wrong_size():
    items = [1, 2, 3, 4]
    expected = ("ValueError", "attempt to assign sequence of size 1 to extended slice of size 2")
    assert message(items.__setitem__, slice(None, None, 2), [1]) == expected
    assert items == [1, 2, 3, 4]


def test_growing_while_iterating():
    items = [1, 2]
    seen = []
    for item in items:
        seen.append(item)
        if len(items) < 6:
            items.append(item * 10)
    assert seen == [1, 2, 10, 20, 100, 200]


def test_shrinking_while_iterating():
    items = [1, 2, 3, 4]
    seen = []
    for item in items:
        seen.append(item)
        items.remove(item)
    assert seen == [1, 3]
    assert items == [2, 4]


def test_cycles():
    a = [1]
    b = [a]
    a.append(b)
    assert a[1][0] is a
    assert b[0][1] is b


def test_existing_list():
    try:
        HISTORY.append(4)
        assert HISTORY[-1] == 4
        HISTORY[0] = 0
        assert HISTORY == [0, 2, 3, 4]
        HISTORY.insert(1, "x")
        del HISTORY[2]
        assert HISTORY == [0, "x", 3, 4]
    finally:
        HISTORY[:] = [1, 2, 3]
    assert HISTORY == [1, 2, 3]


def test_existing_nested_list():
    NESTED[0].append(7)
    assert NESTED == [[1, 7], [2, 3], []]
    assert NESTED[0].pop() == 7
    NESTED[2], NESTED[1] = NESTED[1], NESTED[2]
    assert NESTED == [[1], [], [2, 3]]
    NESTED[1], NESTED[2] = NESTED[2], NESTED[1]
    assert NESTED == [[1], [2, 3], []]


def test_subclass():
    stack = Stack([1, 2], label="mine")
    assert stack.push(3).label == "mine"
    assert stack == [1, 2, 3]
    assert type(stack) is Stack
    assert isinstance(stack, list)
    assert type(stack[:]) is list
    assert type(stack + [1]) is list
    assert type(stack.copy()) is list
    stack.label = "other"
    assert stack.label == "other"
    assert Stack().push("a") == ["a"]


def test_overridden_methods():
    class Doubled(list):
        def __getitem__(self, index):
            return super().__getitem__(index) * 2

        def __len__(self):
            return 100

        def __iter__(self):
            return iter("over")

    items = Doubled([1, 2])
    assert items[0] == 2
    assert len(items) == 100
    assert list(items) == ["o", "v", "e", "r"]
    assert list.__len__(items) == 2
    assert [*list.__iter__(items)] == [1, 2]


def test_comprehensions():
    assert [x * y for x in (1, 2) for y in (3, 4) if x != y - 2] == [4, 6]
    assert [[j for j in range(i)] for i in range(3)] == [[], [0], [0, 1]]


def test_unpacking():
    first, *middle, last = [1, 2, 3, 4]
    assert (first, middle, last) == (1, [2, 3], 4)
    [a, [b, *c]] = [1, [2, 3, 4]]
    assert (a, b, c) == (1, 2, [3, 4])
    got = ", got 3" if sys.version_info >= (3, 14) else ""
    words = f"too many values to unpack (expected 2{got})"
    assert message(lambda: [0 for x, y in [(1, 2, 3)]]) == ("ValueError", words)


def test_truth():
    assert not []
    assert [0]
    assert [] or "empty"


class WithSlots(list):
    __slots__ = ("extra", "other")


FILLED = WithSlots((1, 2))
FILLED.extra = "old"


def test_slots_of_a_subclass():
    made = WithSlots("ab")
    made.extra = 3
    assert (made, made.extra, hasattr(made, "other")) == (["a", "b"], 3, False)
    old, FILLED.extra = FILLED.extra, "new"
    FILLED.append(3)
    assert (old, FILLED.extra, FILLED.pop()) == ("old", "new", 3)
    del FILLED.extra
    assert not hasattr(FILLED, "extra")
    FILLED.extra = "old"
    return made, made.extra


def test_comparing_lists_that_hold_themselves():
    ours, theirs = [1], [1]
    ours.append(ours)
    theirs.append(theirs)
    for compare in (lambda: ours == theirs, lambda: ours < theirs):
        name, words = message(compare)
        assert name == "RecursionError" and words.endswith("in comparison")
    assert ours == ours and ours[:1] != theirs
    pairs, others = {}, {}
    pairs["self"], others["self"] = (pairs,), (others,)
    assert message(lambda: pairs == others) == ("RecursionError", words)
    theirs[0] = 2
    assert ours != theirs
