"""Classes derived from the iterator types of C."""

import collections
import copy
import itertools


class Numbered(enumerate):
    pass


class Loud(map):
    def __next__(self):
        return "loud", super().__next__()


class Slotted(zip):
    __slots__ = ("mark",)


class Evens(filter):
    def __new__(cls, items):
        self = super().__new__(cls, lambda n: n % 2 == 0, items)
        self.made = "here"
        return self

    def __init__(self, items):
        self.items = items


class Chained(itertools.chain):
    asked = 0

    def __iter__(self):
        self.asked += 1
        return super().__iter__()


class Backwards(reversed):
    pass


class Row(collections.UserList):
    __reversed__ = None


class Indexed:
    def __len__(self):
        return 3

    def __getitem__(self, index):
        if index > 2:
            raise IndexError
        return index * 10


def test_plain_subclass():
    numbered = Numbered("abc", 5)
    assert type(numbered) is Numbered and isinstance(numbered, enumerate)
    assert next(numbered) == (5, "a")
    assert list(numbered) == [(6, "b"), (7, "c")]
    assert numbered.__reduce__()[0] is Numbered


def test_attributes():
    numbered = Numbered("ab")
    numbered.name = "n"
    assert numbered.__dict__ == {"name": "n"}
    assert vars(numbered)["name"] == numbered.name
    slotted = Slotted("ab", [1, 2])
    slotted.mark = [slotted]
    assert slotted.mark[0] is slotted
    assert list(slotted) == [("a", 1), ("b", 2)]


def test_overridden_next():
    loud = Loud(str, [1, 2, 3])
    assert next(loud) == ("loud", "1")
    assert list(loud) == [("loud", "2"), ("loud", "3")]
    assert list(zip(Loud(int, "12"), "ab", strict=True)) == [(("loud", 1), "a"), (("loud", 2), "b")]


def test_overridden_new_and_init():
    evens = Evens([1, 2, 3, 4])
    assert (evens.made, evens.items) == ("here", [1, 2, 3, 4])
    assert list(evens) == [2, 4]


def test_overridden_iter():
    chained = Chained("a", "b")
    assert list(chained) == ["a", "b"]
    assert chained.asked == 1
    assert [*Chained.from_iterable([[1], [2, 3]])] == [1, 2, 3]
    assert Chained.from_iterable([]).asked == 0


def test_reversed():
    backwards = Backwards((1, 2, 3))
    assert type(backwards) is Backwards
    assert next(backwards) == 3
    assert list(backwards) == [2, 1]
    assert list(Backwards(Indexed())) == [20, 10, 0]


def test_copies():
    numbered = Numbered("abc")
    next(numbered)
    again = copy.copy(numbered)
    assert type(again) is Numbered
    assert list(again) == [(1, "b"), (2, "c")]


def test_made_and_returned():
    def make():
        found = []
        for cls, args in (
            (itertools.cycle, ("ab",)),
            (itertools.repeat, (1, 2)),
            (itertools.count, (3,)),
            (itertools.islice, ("abc", 2)),
            (itertools.accumulate, ([1, 2, 3],)),
            (itertools.product, ("ab", "c")),
            (itertools.groupby, ("aab",)),
            (itertools.takewhile, (str.isalpha, "a1")),
        ):
            derived = type("Derived", (cls,), {})
            made = derived(*args)
            next(made)
            made.note = cls.__name__
            found.append(made)
        return found

    made = make()
    assert [each.note for each in made][:3] == ["cycle", "repeat", "count"]
    assert [next(each, None) for each in made[:6]] == ["b", 1, 4, "b", 3, ("b", "c")]


NUMBERED = Numbered([])
NUMBERED.note = "before"


def test_existing():
    assert NUMBERED.note == "before" and vars(NUMBERED) == {"note": "before"}
    assert list(NUMBERED) == []


def test_classes_that_refuse():
    try:
        enumerate.__new__(list, [])
    except TypeError as e:
        assert str(e) == "enumerate.__new__(list): list is not a subtype of enumerate"
    else:
        raise AssertionError
