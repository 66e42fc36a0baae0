"""Ranges and slice objects."""

import sys

from apptests.raising import message


class Three:
    def __index__(self):
        return 3


class Loose:
    def __eq__(self, other):
        return other == 4

    __hash__ = None


STEPS = range(0, 10, 3)
MIDDLE = slice(1, -1)


def test_range():
    assert list(range(3)) == [0, 1, 2]
    assert list(range(5, 0, -2)) == [5, 3, 1]
    assert len(range(0, 10, 3)) == 4
    assert range(10)[2:8:3] == range(2, 8, 3)
    assert range(10)[-1] == 9
    assert 4 in range(0, 10, 2)
    assert "a" not in range(3)
    assert 2.0 in range(3)
    assert Loose() in range(6)
    assert range(6).index(Loose()) == 4
    assert range(6).count(Loose()) == 1
    assert range(0) == range(2, 2)
    assert range(3) != [0, 1, 2]
    assert hash(range(3)) == hash(range(0, 3, 1))
    assert repr(range(1, 5)) == "range(1, 5)"
    assert not range(0)
    assert range(Three()) == range(3)
    assert (STEPS.start, STEPS.stop, STEPS.step) == (0, 10, 3)
    assert [*STEPS] == [0, 3, 6, 9]


def test_range_errors():
    assert message(range, 1, 2, 0) == ("ValueError", "range() arg 3 must not be zero")
    assert message(range, "a") == ("TypeError", "'str' object cannot be interpreted as an integer")
    assert message(lambda: range(3)[5]) == ("IndexError", "range object index out of range")
    shown = sys.version_info < (3, 14)
    assert message(range(3).index, 7) == (
        "ValueError",
        "7 is not in range" if shown else "range.index(x): x not in range",
    )


def test_slice():
    part = slice(1, 4)
    assert (part.start, part.stop, part.step) == (1, 4, None)
    assert [0, 1, 2, 3, 4][part] == [1, 2, 3]
    assert "abcde"[part] == "bcd"
    assert part.indices(3) == (1, 3, 1)
    assert slice(None, None, -1).indices(3) == (2, -1, -1)
    assert slice(3) == slice(None, 3, None)
    assert slice(1) != slice(2)
    assert slice(1, 2) < slice(1, 3)
    assert repr(slice(1, "a")) == "slice(1, 'a', None)"
    assert (1, 2, 3, 4)[MIDDLE] == (2, 3)
    assert message(lambda: [1]["a":]) == (
        "TypeError",
        "slice indices must be integers or None or have an __index__ method",
    )


class Told:
    def __init__(self, log, hashed):
        self.log, self.hashed = log, hashed

    def __hash__(self):
        self.log.append(self.hashed)
        return self.hashed

    def __eq__(self, other):
        return isinstance(other, Told) and self.hashed == other.hashed


def test_hashes_of_slices():
    """Since CPython 3.12 they have some, of their members'; what eager answers on each Python is compared."""
    log = []
    parts = slice(1, 2), MIDDLE, slice(Told(log, 3), Told(log, -1), Told(log, 2**80)), slice([], Told(log, 4))
    found = [message(hash, part) or hash(part) for part in parts]
    found += [message(part.__hash__) or part.__hash__() for part in parts]
    try:
        table = {slice(1, 2): "plain", slice(Told(log, 3), 2): "told"}
        found.append((table[slice(1, 2)], table[slice(Told(log, 3), 2)], slice(1, 3) in table, MIDDLE in {MIDDLE}))
    except TypeError as e:
        found.append(str(e))
    return found, log


def test_slices_reach_getitem_as_they_are():
    class Grid:
        def __getitem__(self, key):
            return key

    row, column = Grid()[1:2, ::3]
    assert row == slice(1, 2)
    assert column == slice(None, None, 3)
    assert Grid()[..., None] == (..., None)
    marker = []
    assert Grid()[marker:].start is marker
