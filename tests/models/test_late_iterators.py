"""Iterators over containers that the same trace has changed: the real ones, though the change is written back later."""

import operator
from collections import OrderedDict, deque

import pytest

import stator


class Table(dict):
    pass


def keys(d):
    d["new"] = 3
    return iter(d)


def values_begun(d):
    d["new"] = 3
    found = iter(d.values())
    next(found)
    return found


def items_backwards(d):
    d["new"] = 3
    del d["a"]
    found = reversed(d.items())
    next(found)
    return found


def held_by_the_dict(d):
    d["new"] = 3
    d["self"] = iter(d.items())
    return d["self"]


def changed_after(d):
    d["new"] = 3
    found = iter(d)
    next(found)
    d["newer"] = 4
    return found


def in_a_tuple(d):
    d["new"] = 3
    return (iter(d), [iter(d.keys())])[0]


def elements(s):
    s.discard(2)
    return iter(s)


def elements_begun(s):
    s.discard(2)
    found = iter(s)
    next(found)
    return found


def elements_changed_after(s):
    s.discard(2)
    found = iter(s)
    s.discard(3)
    return found


def entries(q):
    q.append("new")
    found = iter(q)
    next(found)
    return found


def entries_backwards(q):
    q.appendleft("new")
    return reversed(q)


def entries_changed_after(q):
    q.append("new")
    found = iter(q)
    q.append("newer")
    return found


def outcome(make, container):
    found = make(container)
    shown = [type(found), operator.length_hint(found)]
    try:
        shown += list(found)
    except RuntimeError as e:
        shown.append(str(e))
    try:
        shown.append(next(found))
    except Exception as e:
        shown.append(repr(e))
    return shown


DICTS = [keys, values_begun, items_backwards, held_by_the_dict, changed_after, in_a_tuple]
SETS = [elements, elements_begun, elements_changed_after]
DEQUES = [entries, entries_backwards, entries_changed_after]


@pytest.mark.parametrize(
    ("make", "fresh"),
    [(make, fresh) for make in DICTS for fresh in (dict, Table, OrderedDict)]
    + [(make, set) for make in SETS]
    + [(make, deque) for make in DEQUES],
    ids=lambda item: item.__name__,
)
def test_late_iterator(make, fresh):
    items = [("a", 1), ("b", 2), ("c", 3)] if issubclass(fresh, dict) else [1, 2, 3]
    compiled = stator.compile(make, backend="eager", fullgraph=True)
    expected = repr(outcome(make, fresh(items)))
    assert repr(outcome(compiled, fresh(items))) == expected


def grown(items: list[int]) -> tuple[list[int], list[int]]:
    items.append(3)
    seen = []
    for item in items:
        stator.graph_break()
        if len(items) < 4:
            items.append(item + 4)
        seen.append(item)
    return seen, items


def grown_backwards(items: list[int]) -> tuple[list[int], list[int]]:
    items.extend((3, 4))
    backwards = reversed(items)
    seen = [next(backwards)]
    stator.graph_break()
    seen.extend(backwards)
    return seen, items


@pytest.mark.parametrize("program", [grown, grown_backwards])
def test_an_iterator_behind_what_a_list_had_before_the_trace(program) -> None:
    # Its position is set when the list has its new items: one beyond the end is taken for the end.
    compiled = stator.compile(program, backend="eager")
    for items in ([], [1], [1, 2]):
        assert compiled(list(items)) == program(list(items))
    assert "SB0404" not in {record.code for record in stator.stats().breaks}, "no function is given up"
