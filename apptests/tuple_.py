"""Tuples, named tuples and subclasses."""

import time
from collections import namedtuple
from typing import NamedTuple

from apptests.raising import message

Point = namedtuple("Point", "x y", defaults=(0,))


class Typed(NamedTuple):
    name: str
    size: int = 3

    def double(self):
        return self._replace(size=self.size * 2)


class Pair(tuple):
    def __new__(cls, a, b):
        return super().__new__(cls, (a, b))

    @property
    def first(self):
        return self[0]

    def __eq__(self, other):
        return isinstance(other, Pair) and tuple.__eq__(self, other)

    __hash__ = tuple.__hash__


class Anything:
    pass


EXISTING = (1, [2], Point(3, 4))
PAIR = Pair(1, 2)
MOMENT = time.gmtime(0)
ZONE = MOMENT.tm_zone


def test_making():
    assert tuple() == ()
    assert tuple([1, 2]) == (1, 2)
    assert tuple("ab") == ("a", "b")
    items = (1, 2)
    assert tuple(items) is items
    assert (*items, 3) == (1, 2, 3)


def test_indexing():
    items = (1, 2, 3, 4)
    assert items[1] == 2
    assert items[-1] == 4
    assert items[1:3] == (2, 3)
    assert items[::-2] == (4, 2)
    assert items[:] is items
    assert message(lambda: items[4]) == ("IndexError", "tuple index out of range")
    assert message(lambda: items[1.0]) == ("TypeError", "tuple indices must be integers or slices, not float")


def test_arithmetic():
    assert (1,) + (2,) == (1, 2)
    assert (1,) * 2 == (1, 1)
    assert 0 * (1,) == ()
    assert message(lambda: (1,) + [2]) == ("TypeError", 'can only concatenate tuple (not "list") to tuple')


def test_searching():
    items = (1, 2, 1)
    assert items.count(1) == 2
    assert items.index(1, 1) == 2
    assert 2 in items
    assert None not in items
    assert message(items.index, 5) == ("ValueError", "tuple.index(x): x not in tuple")


def test_comparing():
    assert (1, 2) < (1, 3)
    assert (1,) < (1, 0)
    assert (1, "a") == (1, "a")
    assert (1, 2) != [1, 2]
    assert max((1, 5), (2, 0)) == (2, 0)
    assert message(lambda: (1,) < ("a",)) == (
        "TypeError",
        "'<' not supported between instances of 'int' and 'str'",
    )


def test_hashing():
    thing = Anything()
    table = {(1, 2): "known", (thing, 1): "traced"}
    assert table[1, 2] == "known"
    assert table[thing, 1] == "traced"
    assert (Anything(), 1) not in table
    assert hash((1, "a")) == hash((1, "a"))
    assert hash(()) == hash(tuple([]))
    assert message(hash, (1, [])) == ("TypeError", "unhashable type: 'list'")


def test_repr():
    assert repr((1,)) == "(1,)"
    assert repr(()) == "()"
    assert repr((1, ("a", None))) == "(1, ('a', None))"
    assert str(Point(1)) == "Point(x=1, y=0)"


def test_named_tuple():
    point = Point(1, y=2)
    assert (point.x, point.y) == (1, 2)
    assert point == (1, 2)
    x, y = point
    assert (x, y) == (1, 2)
    assert point._replace(x=5) == Point(5, 2)
    assert point._asdict() == {"x": 1, "y": 2}
    assert Point._make([7, 8]).y == 8
    assert Point._fields == ("x", "y")
    assert type(point[:1]) is tuple
    assert isinstance(point, tuple)
    assert {point: 1}[(1, 2)] == 1
    assert message(lambda: Point()) == (
        "TypeError",
        "Point.__new__() missing 1 required positional argument: 'x'",
    )
    assert message(setattr, point, "x", 1) == ("AttributeError", "can't set attribute")


def test_typed_named_tuple():
    item = Typed("a")
    assert item.double() == ("a", 6)
    assert type(item.double()) is Typed
    assert item.double().name == "a"


def test_named_tuple_made_inside():
    Local = namedtuple("Local", ["a", "b"])
    assert Local(1, 2).b == 2


def test_subclass():
    pair = Pair(1, 2)
    assert pair.first == 1
    assert type(pair) is Pair
    assert pair == Pair(1, 2)
    assert not pair == (1, 2)
    assert pair + (3,) == (1, 2, 3)
    assert type(pair[:]) is tuple
    assert {pair: "here"}[Pair(1, 2)] == "here"
    assert PAIR.first == 1
    assert PAIR == pair


def test_subclass_with_attributes():
    class Tagged(tuple):
        pass

    tagged = Tagged("ab")
    tagged.tag = "t"
    assert tagged == ("a", "b")
    assert tagged.tag == "t"
    assert type(tagged * 1) is tuple


def test_existing_tuple():
    assert EXISTING[0] == 1
    EXISTING[1].append(5)
    assert EXISTING[1] == [2, 5]
    EXISTING[1].pop()
    assert EXISTING[2].y == 4
    assert len(EXISTING) == 3
    number, [two], point = EXISTING
    assert (number, two, point.x) == (1, 2, 3)


def test_structure_sequence():
    assert MOMENT.tm_year == 1970
    assert MOMENT[0] == 1970
    assert tuple(MOMENT)[:3] == (1970, 1, 1)
    assert MOMENT.tm_zone == ZONE
    year, *_ = MOMENT
    assert year == 1970


def test_tuple_methods_of_subclass_via_super():
    class Shifted(tuple):
        def __getitem__(self, index):
            return super().__getitem__(index - 1)

    assert Shifted((1, 2, 3))[1] == 1
    assert list(Shifted((1, 2, 3))) == [1, 2, 3]


def test_identity():
    item = []
    items = (item, item)
    assert items[0] is items[1]
    empty = ()
    assert empty is tuple([])
    assert (items + ()) is items


def _noted(notes):
    notes.items.append(1)
    return repr(notes), notes == ([1],)


class Noting(NamedTuple):
    items: list


def test_changed_items_of_an_existing_named_tuple():
    made = Noting(eval("[]"))  # a graph break, after which it exists
    return _noted(made)
