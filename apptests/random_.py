"""random: generators that exist and new ones, seeded, drawn from, saved and restored."""

import _random
import copy
import random

from apptests.marks import expected_break
from apptests.raising import message


class Loaded(random.Random):
    """A generator that has a random() of its own."""

    def __init__(self, seed):
        self.drawn = 0
        super().__init__(seed)

    def random(self):
        self.drawn += 1
        return super().random() / 2


def test_seeded():
    random.seed(12)
    cards = list(range(4))
    random.shuffle(cards)
    drawn = [random.random(), random.gauss(0, 1), random.choice("abcdef"), random.randint(1, 6)]
    return cards, drawn, random.sample(range(9), 2), random.choices("xyz", k=2), random.getrandbits(70)


def test_new_generators():
    one, two = random.Random(5), random.Random(5)
    same = [one.random() == two.random() for _ in range(3)]
    one.getrandbits(3)
    return same, one.random() == two.random(), one.uniform(1, 2), two.randrange(3, 30, 3)


def test_state_saved():
    generator = random.Random(8)
    state = generator.getstate()
    first = generator.random()
    generator.setstate(state)
    assert first == generator.random()
    assert isinstance(random.Random(), random.Random)
    assert copy.copy(generator).random() == generator.random()
    return state[0], len(state[1])


def test_subclass():
    loaded = Loaded(3)
    total = sum(loaded.random() for _ in range(5)) + loaded.uniform(0, 1)
    return loaded.drawn, total, loaded.randrange(10)


def test_of_the_c_type():
    plain = _random.Random(4)
    return plain.random(), plain.getrandbits(9), plain.seed(7), plain.random()


@expected_break("nobody knows the numbers")
def test_seeded_by_the_system():
    generator = random.Random()
    plain = _random.Random()
    return len({generator.random(), generator.random(), plain.random(), plain.random()})


class Unseeded(_random.Random):
    def __init__(self, seed=None):
        pass


def test_not_seeded():
    return Unseeded().random(), Unseeded(5).getstate()[:3], Unseeded.__new__(random.Random).getrandbits(9)


def test_errors():
    generator = random.Random(1)
    return [
        message(lambda: generator.getrandbits(-1)),
        message(lambda: generator.getrandbits("1")),
        message(lambda: generator.setstate((3, (), None))),
        message(lambda: generator.sample([1], 2)),
        message(lambda: generator.choice([])),
        message(lambda: random.Random([1])),
        generator.getrandbits(0),
    ]
