"""Sorting: keys, stability, the order of comparisons, and lists that are touched meanwhile."""

from apptests.raising import message


class Card:
    """Compares by its rank, and notes each comparison."""

    compared = []

    def __init__(self, rank, name):
        self.rank = rank
        self.name = name

    def __lt__(self, other):
        Card.compared.append((self.name, other.name))
        return self.rank < other.rank


class Plain:
    def __init__(self, value):
        self.value = value


def comparisons():
    """Which cards are compared when some are sorted."""
    Card.compared = []
    sorted([Card(rank, name) for rank, name in zip([2, 1, 3, 0, 9, 2, 7], "abcdefg")])
    return list(Card.compared)


EXPECTED = comparisons()


def test_known():
    assert sorted([3, 1, 2]) == [1, 2, 3]
    assert sorted("hello") == ["e", "h", "l", "l", "o"]
    assert sorted([3, 1, 2], reverse=True) == [3, 2, 1]
    assert sorted({"b": 1, "a": 2}) == ["a", "b"]
    items = [2.5, 1, True]
    assert items.sort() is None
    assert items == [1, True, 2.5]
    assert sorted([(1, "b"), (1, "a"), (0, "z")]) == [(0, "z"), (1, "a"), (1, "b")]


def test_key():
    words = ["bb", "a", "ccc", "dd"]
    assert sorted(words, key=len) == ["a", "bb", "dd", "ccc"]
    assert sorted(words, key=len, reverse=True) == ["ccc", "bb", "dd", "a"]
    assert sorted(words, key=lambda w: (-len(w), w)) == ["ccc", "bb", "dd", "a"]
    assert sorted(words, key=None) == ["a", "bb", "ccc", "dd"]


def test_stability():
    pairs = [(1, "a"), (0, "b"), (1, "c"), (0, "d")]
    assert sorted(pairs, key=lambda p: p[0]) == [(0, "b"), (0, "d"), (1, "a"), (1, "c")]
    assert sorted(pairs, key=lambda p: p[0], reverse=True) == [(1, "a"), (1, "c"), (0, "b"), (0, "d")]


def test_own_comparison():
    cards = [Card(3, "x"), Card(1, "y"), Card(2, "z")]
    cards.sort()
    assert [card.name for card in cards] == ["y", "z", "x"]


def test_comparisons_are_those_of_cpython():
    assert comparisons() == EXPECTED


def test_keys_that_are_objects():
    things = [Plain(3), Plain(1)]
    ordered = sorted(things, key=lambda thing: Card(thing.value, "k"))
    assert ordered[0] is things[1]


def test_incomparable():
    expected = ("TypeError", "'<' not supported between instances of 'str' and 'int'")
    assert message(sorted, [1, "a"]) == expected
    expected = ("TypeError", "'<' not supported between instances of 'Plain' and 'Plain'")
    assert message(sorted, [Plain(1), Plain(2)]) == expected


def test_list_is_empty_meanwhile():
    items = [3, 1, 2]
    seen = []

    def key(item):
        seen.append(list(items))
        return item

    items.sort(key=key)
    assert seen == [[], [], []]
    assert items == [1, 2, 3]


def test_list_modified_meanwhile():
    items = [3, 1, 2]

    def key(item):
        items.append(item)
        return item

    assert message(items.sort, key=key) == ("ValueError", "list modified during sort")
    assert items == [1, 2, 3]


def test_list_restored_after_an_error():
    items = [3, 1, 2]

    def key(item):
        if item == 2:
            raise KeyError(item)
        return item

    assert message(items.sort, key=key) == ("KeyError", "2")
    assert items == [3, 1, 2]


def test_sort_takes_no_positional_arguments():
    assert message([].sort, len) == ("TypeError", "sort() takes no positional arguments")


def test_min_and_max():
    assert max([1, 3, 2]) == 3
    assert min("b", "a") == "a"
    assert max(["a", "bbb", "cc"], key=len) == "bbb"
    assert min([], default=7) == 7
