"""The tables of sets: read, and given to other sets."""

import gc
import sys

import pytest

from stator._core import fill_table, set_finger, set_layout, set_table


class Sub(set):
    pass


class Frozen(frozenset):
    pass


def gapped(count, step):
    s = set(range(count))
    for n in range(0, count, step):
        s.discard(n)
    return s


SETS = [
    set(),
    {1},
    {8, 16, 0},
    {16, 8, -1, -2},
    gapped(4, 2),
    gapped(100, 3),
    gapped(50_000, 7),
    set("abcdefgh"),
    frozenset(range(200)),
    frozenset(),
    Sub("xyz"),
    Frozen(range(20)),
]


def twin(s):
    return fill_table(type(s)(), set_table(s), list(s))


@pytest.mark.parametrize("s", SETS)
def test_a_twin_has_the_same_table(s):
    other = twin(s)
    assert other == s
    assert list(map(id, other)) == list(map(id, s))
    assert set_table(other) == set_table(s)
    assert set_layout(other) == set_layout(s)
    assert sys.getsizeof(other) == sys.getsizeof(s)
    assert all(element in other for element in s)


@pytest.mark.parametrize("s", [s for s in SETS if isinstance(s, set)])
def test_a_twin_goes_on_as_the_other_does(s):
    mine, theirs = s.copy(), s.copy()
    for one in (mine, theirs):
        one.difference_update(list(one)[::2])
        if one:
            one.pop()
    theirs = twin(theirs)
    for one in (mine, theirs):
        one.update(range(1000, 1100, 8))
        one.discard(next(iter(one)))
    assert set_table(mine) == set_table(theirs)
    assert [mine.pop() for _ in range(len(mine))] == [theirs.pop() for _ in range(len(theirs))]


def test_what_the_places_say():
    s = {1, 2, 3}
    s.discard(2)
    assert set_layout(s) == (b".xox....", 1, 3)
    assert set_table(s) == (b".xox....", 0, (1, 3))
    assert set_finger(s) == 0
    assert s.pop() == 1
    assert set_finger(s) == 2
    assert set_table(s) == (b".oox....", 2, (3,))


def test_references_are_counted():
    element = object()
    s = {element, "a"}
    before = sys.getrefcount(element)
    others = [twin(s) for _ in range(10)]
    layouts = [set_layout(s) for _ in range(10)]
    assert sys.getrefcount(element) == before + 20
    del others, layouts
    gc.collect()
    assert sys.getrefcount(element) == before


@pytest.mark.parametrize(
    "table, elements",
    [
        ((b"", 0, ()), []),
        ((b"....", 0, ()), []),
        ((b".........", 0, ()), []),
        ((b"xxxxxxxx", 0, tuple(range(8))), list(range(8))),
        ((b".x.....?", 0, (1,)), [1]),
        ((b".x......", 0, (1, 2)), [1]),
        ((b".x......", 0, (1,)), []),
        ((b".x......", 0, (1,)), [1, 2]),
        ((b".x......", -2, (1,)), [1]),
        ((b"xx......", 0, (0, -1)), [0, 1]),
    ],
)
def test_what_is_no_table(table, elements):
    element = object()
    s = set()
    with pytest.raises(ValueError, match="table|hash"):
        fill_table(s, table, elements)
    s.add(element)
    assert s == {element}


def test_a_hash_that_is_no_number():
    element, s = object(), set()
    before = sys.getrefcount(element)
    for size in (8, 64):
        with pytest.raises(TypeError):
            fill_table(s, (b"xx".ljust(size, b"."), 0, (1, "2")), [element, element])
        with pytest.raises(OverflowError):
            fill_table(s, (b"xx".ljust(size, b"."), 0, (1, 2**70)), [element, element])
    assert sys.getrefcount(element) == before
    assert not s and element not in s


def test_wrong_arguments():
    for function in (set_layout, set_table, set_finger):
        with pytest.raises(TypeError, match="expected a set"):
            function([])
    table = set_table(set())
    for args in [(), ([], table, []), (set(), None, []), (set(), table, 3), (set(), (1, 2, 3), [])]:
        with pytest.raises(TypeError):
            fill_table(*args)
    for full in ({1}, gapped(1, 1), frozenset("a")):
        with pytest.raises(ValueError, match="only an empty set"):
            fill_table(full, table, [])


def test_a_finger_is_left_alone():
    s = set(range(5))
    s.pop()
    s.pop()
    s.clear()
    fill_table(s, (b"x.......", -1, (8,)), [8])
    assert set_finger(s) == 2 and s == {8}
