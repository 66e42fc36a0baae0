"""Copies of containers: shallow, deep, and of subclasses."""

import copy
from collections import deque, namedtuple

Point = namedtuple("Point", "x y")


class Stack(list):
    def __init__(self, items=(), label="stack"):
        super().__init__(items)
        self.label = label


STACK = Stack([1, [2]], "existing")


def test_shallow():
    items = [1, [2]]
    other = copy.copy(items)
    assert other == items
    assert other is not items
    assert other[1] is items[1]
    pair = (items, 1)
    assert copy.copy(pair) is pair
    assert copy.copy(deque([1], 2)) == deque([1])


def test_deep():
    items = [1, [2], (3, [4])]
    other = copy.deepcopy(items)
    assert other == items
    assert other[1] is not items[1]
    assert other[2][1] is not items[2][1]
    shared = [[]] * 2
    twin = copy.deepcopy(shared)
    assert twin[0] is twin[1]
    assert twin[0] is not shared[0]
    known = (1, (2, "a"))
    assert copy.deepcopy(known) is known


def test_deep_cycle():
    items = [1]
    items.append(items)
    other = copy.deepcopy(items)
    assert other[1] is other
    assert other is not items


def test_named_tuple():
    point = Point([1], 2)
    assert copy.copy(point) == point
    other = copy.deepcopy(point)
    assert other == point
    assert type(other) is Point
    assert other.x is not point.x


def test_subclass():
    stack = Stack([1, [2]], "mine")
    other = copy.copy(stack)
    assert other == stack
    assert type(other) is Stack
    assert other.label == "mine"
    assert copy.deepcopy(stack)[1] is not stack[1]


def test_existing_subclass():
    other = copy.copy(STACK)
    assert (other, other.label) == ([1, [2]], "existing")
    STACK.label = "renamed"
    STACK.append(3)
    assert STACK == [1, [2], 3]
    assert STACK.label == "renamed"
    STACK.pop()
    STACK.label = "existing"
