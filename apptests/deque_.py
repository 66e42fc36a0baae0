"""Deques, with and without a maximal length."""

import sys
from collections import deque

from apptests.raising import message

RECENT = deque([1, 2, 3], maxlen=3)
QUEUE = deque()


class Window(deque):
    def mean(self):
        return sum(self) / len(self)


def test_both_ends():
    items = deque("bc")
    items.append("d")
    items.appendleft("a")
    assert list(items) == ["a", "b", "c", "d"]
    assert items.pop() == "d"
    assert items.popleft() == "a"
    items.extend([1, 2])
    items.extendleft([3, 4])
    assert list(items) == [4, 3, "b", "c", 1, 2]
    items.rotate(2)
    assert list(items) == [1, 2, 4, 3, "b", "c"]
    items.rotate(-1)
    assert items[0] == 2
    assert list(reversed(items)) == [1, "c", "b", 3, 4, 2]
    items.clear()
    assert not items


def test_maxlen():
    items = deque([1, 2, 3], 2)
    assert items.maxlen == 2
    assert list(items) == [2, 3]
    items.append(4)
    assert list(items) == [3, 4]
    items.appendleft(2)
    assert list(items) == [2, 3]
    assert (items + deque([9])).maxlen == 2
    assert list(items * 2) == [2, 3]
    assert message(items.insert, 0, 1) == ("IndexError", "deque already at its maximum size")
    assert repr(items) == "deque([2, 3], maxlen=2)"
    assert deque().maxlen is None


def test_comparing():
    assert deque([1, 2]) == deque([1, 2])
    assert deque([1]) != [1]
    assert deque([1, 2]) < deque([1, 3])
    assert deque([1]).copy() == deque([1])


def test_searching():
    items = deque([1, 2, 1])
    assert items.count(1) == 2
    assert items.index(1, 1) == 2
    assert 2 in items
    items.remove(1)
    assert items == deque([2, 1])
    shown = sys.version_info < (3, 14)
    assert message(items.index, 5) == ("ValueError", "5 is not in deque" if shown else "deque.index(x): x not in deque")
    assert message(lambda: items[0:1]) == ("TypeError", "sequence index must be integer, not 'slice'")


def test_changing_while_iterating():
    items = deque([1, 2])

    def change():
        for item in items:
            items.append(item)

    assert message(change) == ("RuntimeError", "deque mutated during iteration")


def test_subclass():
    window = Window([1, 3], maxlen=2)
    window.append(5)
    assert window.mean() == 4
    assert type(window.copy()) is Window
    window.name = "w"
    assert window.name == "w"


def test_existing():
    try:
        RECENT.append(4)
        assert list(RECENT) == [2, 3, 4]
        RECENT.append(5)
        assert RECENT[0] == 3
        QUEUE.append("job")
        QUEUE.append("other")
        assert QUEUE.popleft() == "job"
        assert len(QUEUE) == 1
    finally:
        RECENT.extend([1, 2, 3])
        QUEUE.clear()
    assert list(RECENT) == [1, 2, 3]


def test_breadth_first():
    edges = {"a": "bc", "b": "d", "c": "d", "d": ""}
    seen, waiting = [], deque("a")
    while waiting:
        node = waiting.popleft()
        if node in seen:
            continue
        seen.append(node)
        waiting.extend(edges[node])
    assert seen == ["a", "b", "c", "d"]


class Strange(deque):
    def __new__(cls, *args):
        return deque.__new__(cls) if cls.usual else [42]

    usual = True


def test_copies_of_a_subclass():
    window = Window([1, 2], 3)
    assert type(window * 2) is Window
    assert (window * 2, (window * 2).maxlen) == (Window([2, 1, 2]), 3)
    assert type(window + deque([3])) is Window
    assert message(lambda: window + [3]) == ("TypeError", 'can only concatenate deque (not "list") to deque')

    class Odd(Strange):
        pass

    odd = Odd()
    Odd.usual = False
    for function in (lambda: odd * 2, lambda: odd + deque(), odd.copy):
        assert message(function) == ("TypeError", "Odd() must return a deque, not list")


PLACES = deque([1, 2, 3])


def test_iterator_goes_on_over_replaced_items():
    iterator = iter(PLACES)
    next(iterator)
    PLACES[1] = PLACES[1] + 1
    PLACES[1] -= 1
    PLACES[2] = 3
    assert list(iterator) == [2, 3]


class WithSlots(deque):
    __slots__ = ("extra",)


def test_slots_of_a_subclass():
    made = WithSlots("ab", 3)
    made.extra = 3
    assert (list(made), made.maxlen, made.extra) == (["a", "b"], 3, 3)
    return made, made.extra
