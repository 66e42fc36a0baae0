"""`reversed` of a sequence of the program's: suspended by a break, and made before the compiled function."""

import pytest

import stator


class Shelf:
    def __init__(self, *items):
        self.items = list(items)
        self.asked = []
        self.lengths = 0

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        self.asked.append(index)
        return self.items[index]


class Counted(Shelf):
    def __len__(self):
        self.lengths += 1
        return len(self.items)


def broken_loop(shelf):
    found = []
    for item in reversed(shelf):
        found.append(item)
        stator.graph_break()
        shelf.items.append(item)
    return found


@pytest.mark.parametrize("kind", [Shelf, Counted])
def test_a_break_in_the_loop_asks_for_nothing_twice(kind):
    shelves = kind(1, 2, 3), kind(1, 2, 3)
    expected = broken_loop(shelves[0])
    assert stator.compile(broken_loop, backend="eager")(shelves[1]) == expected
    assert vars(shelves[0]) == vars(shelves[1])


def test_an_existing_one_is_gone_on_with():
    def take(iterator, shelf):
        first = next(iterator, "none")
        shelf.items.append(7)
        return first, next(iterator, "end")

    compiled = stator.compile(take, backend="eager", fullgraph=True)
    plain, traced = Shelf(1, 2, 3), Shelf(1, 2, 3)
    ours, theirs = reversed(plain), reversed(traced)
    for _ in range(3):
        assert take(ours, plain) == compiled(theirs, traced)
        assert ours.__reduce__()[2:] == theirs.__reduce__()[2:]
        assert vars(plain) == vars(traced)


def test_a_position_that_the_sequence_has_lost():
    def shrink(iterator, shelf):
        first = next(iterator)
        del shelf.items[:]
        return first

    compiled = stator.compile(shrink, backend="eager")
    plain, traced = Shelf(1, 2, 3), Shelf(1, 2, 3)
    ours, theirs = reversed(plain), reversed(traced)
    assert shrink(ours, plain) == compiled(theirs, traced)
    plain.items += [4, 5, 6]
    traced.items += [4, 5, 6]
    assert list(ours) == list(theirs)
