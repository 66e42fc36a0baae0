"""`reversed` of objects of the program's own classes."""


class Shelf:
    def __init__(self, *items):
        self.items = list(items)
        self.asked = []

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        self.asked.append(index)
        return self.items[index]


class Counted(Shelf):
    lengths = 0

    def __len__(self):
        self.lengths += 1
        return len(self.items)


def _taken(shelf, action=None):
    found = []
    for item in reversed(shelf):
        found.append(item)
        if action is not None:
            action(item)
    return found, shelf.asked


def test_loop():
    return _taken(Shelf(1, 2, 3))


def test_a_sequence_that_grows_or_shrinks_meanwhile():
    grows, shrinks = Shelf(1, 2, 3), Shelf(1, 2, 3)
    return _taken(grows, grows.items.append), _taken(shrinks, lambda _: shrinks.items.pop())


def test_begun_and_kept():
    shelf = Shelf(1, 2, 3, 4)
    kept = reversed(shelf)
    first = next(kept)
    return first, list(kept), list(kept), shelf.asked


def test_length_hint_and_state():
    kept = reversed(Shelf(1, 2, 3, 4))
    next(kept)
    kept.__setstate__(1)
    return kept.__length_hint__(), kept.__reduce__()[2], next(kept), next(kept), next(kept, "end"), kept.__reduce__()[1]


SHELF = Shelf(1, 2, 3, 4)


def test_an_existing_sequence():
    SHELF.asked.clear()
    kept = reversed(SHELF)
    found = [next(kept)]
    SHELF.items.append(5)
    found += [*kept]
    SHELF.items.pop()
    return found, list(SHELF.asked)


def test_a_length_that_tells():
    shelf = Counted(1, 2, 3)
    found, asked = _taken(shelf)
    return found, asked, shelf.lengths
