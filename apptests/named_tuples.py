"""Classes that `collections.namedtuple` makes within a compiled function."""

import copy
from collections import namedtuple

from apptests.raising import words

Existing = namedtuple("Existing", "first second")


def test_made_and_used():
    Point = namedtuple("Point", "x y", defaults=[5])
    point = Point(1)
    assert (point, point.x, point.y, repr(point)) == ((1, 5), 1, 5, "Point(x=1, y=5)")
    assert point._asdict() == {"x": 1, "y": 5}
    assert point._replace(x=7) == Point(y=5, x=7)
    assert Point._fields == ("x", "y") and Point._field_defaults == {"y": 5}
    assert Point.__doc__ == "Point(x, y)"
    assert Point.__module__ == __name__
    assert copy.copy(point) == point
    x, y = point
    assert (x, y) == (1, 5)
    match point:
        case Point(x=1, y=other):
            assert other == 5


def test_errors():
    assert words(ValueError, lambda: namedtuple("Bad", "a class")) == (
        "Type names and field names cannot be a keyword: 'class'"
    )
    assert words(ValueError, lambda: namedtuple("Bad", "a a")) == "Encountered duplicate field name: 'a'"
    assert namedtuple("Renamed", "a class", rename=True)._fields == ("a", "_1")
    Point = namedtuple("Point", "x y")
    assert "missing 1 required positional argument: 'y'" in words(TypeError, lambda: Point(1))
    assert words(AttributeError, lambda: setattr(Point(1, 2), "x", 3)) == "can't set attribute"


def test_fields():
    Point = namedtuple("Point", "x y")
    assert Point.x.__doc__ == "Alias for field number 0"
    Point.x.__doc__ = "across"
    assert repr(Point.x) == "_tuplegetter(0, 'across')"
    assert Point.x.__reduce__()[1] == (0, "across")
    assert Point.x.__get__(Point(3, 4)) == 3


def test_doc_of_an_existing_field():
    Existing.first.__doc__ = "1st"
    assert Existing.first.__doc__ == "1st"


def test_subclass():
    class Point(namedtuple("Point", "x y")):
        __slots__ = ()

        @property
        def length(self):
            return (self.x**2 + self.y**2) ** 0.5

    assert Point(3, 4).length == 5
    return Point(3, 4)._asdict()
