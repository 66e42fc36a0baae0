"""random.Random across calls: one state is assumed, a second one is not."""

import random

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


def test_another_state_is_met():
    def draw():
        return [random.randrange(100) for _ in range(3)]

    compiled = stator.compile(draw)
    random.seed(3)
    expected = [draw() for _ in range(6)]
    random.seed(3)
    assert [compiled() for _ in range(6)] == expected
    assert "SB0110" in {record.code for record in stator.stats().breaks}


def test_seeding_leaves_nothing_to_guard():
    def draw(n):
        random.seed(n)
        return random.random()

    compiled = stator.compile(draw, fullgraph=True)
    for _ in range(4):
        assert compiled(5) == random.Random(5).random()
        random.random()
    assert stator.stats().frames == 1
