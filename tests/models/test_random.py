"""random.Random across calls: one state is assumed; what is drawn from others varies."""

import random

import pytest

import stator


def test_a_new_generator_leaves_in_its_state():
    def draw(seed):
        made = random.Random(seed)
        return made.random(), made

    number, made = stator.compile(draw, fullgraph=True)(6)
    again = random.Random(6)
    assert number == again.random()
    assert type(made) is random.Random
    assert made.getstate() == again.getstate()


def test_an_existing_generator_is_advanced():
    def draw(generator):
        return generator.random() + generator.getrandbits(4)

    compiled = stator.compile(draw, fullgraph=True)
    for _ in range(2):
        generator, again = random.Random(2), random.Random(2)
        assert compiled(generator) == draw(again)
        assert generator.getstate() == again.getstate()
    assert stator.stats().frames == 1


def test_seeding_leaves_nothing_to_guard():
    def draw(n):
        random.seed(n)
        return random.random()

    compiled = stator.compile(draw, fullgraph=True)
    for _ in range(4):
        assert compiled(5) == random.Random(5).random()
        random.random()
    assert stator.stats().frames == 1


def vary():
    return (
        random.random() * 2 + random.uniform(2, 3),
        random.randint(1, 5),
        random.randrange(100),
        random.getrandbits(3),
    )


def branch():
    if random.random() < 0.5:
        return "less", random.random()
    return "more", random.choice([3, 5, 7])


def shuffled():
    numbers = [1, 2, 3]
    random.shuffle(numbers)
    return numbers, random.sample([1, 2, 3], 2)


def broken():
    first = random.random()
    stator.graph_break()
    return first, random.random()


def raising():
    number = random.random()
    if number < 0.5:
        raise KeyError("less")
    return number


def seeded():
    before = random.random()
    random.seed(5)
    return before, random.random()


def restored():
    before = random.random()
    random.setstate(STATE)
    return before, random.random()


STATE = random.Random(7).getstate()


def outcomes(run, calls=12):
    random.seed(3)
    found = []
    for _ in range(calls):
        try:
            found.append(run())
        except KeyError as e:
            found.append(str(e))
    return found, random.getstate()


@pytest.mark.parametrize("program", [vary, raising, seeded, restored, broken, shuffled, branch])
def test_numbers_from_a_state_that_is_another_in_each_call(program):
    """With torch they are inputs of graphs (tests/pytorch/test_random_numbers.py); without it ordinary Python draws."""
    assert outcomes(stator.compile(program)) == outcomes(program)


class Loaded(random.Random):
    """Its integers are none of the builtin method's."""

    def getrandbits(self, k):
        return super().getrandbits(k) | 1

    def random(self):
        return super().random() / 2


def test_a_generator_of_another_class():
    def draw(generator):
        return generator.randrange(8), generator.random()

    compiled = stator.compile(draw)
    ours, own = Loaded(1), Loaded(1)
    for _ in range(10):
        assert compiled(ours) == draw(own)
        assert ours.getstate() == own.getstate()


def test_many_draws_break():
    def draw():
        return [random.random() for _ in range(300)]

    assert outcomes(stator.compile(draw), 4) == outcomes(draw, 4)
    assert {record.code for record in stator.stats().breaks} == {"SB0110"}


def test_the_state_is_not_known():
    def draw():
        return random.random(), random.getstate()

    assert outcomes(stator.compile(draw), 4) == outcomes(draw, 4)
    assert "SB0110" in {record.code for record in stator.stats().breaks}
