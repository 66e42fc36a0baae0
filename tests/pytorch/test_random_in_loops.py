"""Numbers that Python's random module draws in loops and branches: few graphs, and the draws of eager execution."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import stator
from tests.pytorch.training import BACKENDS

HERE = Path(__file__).name


def cropped(image: Any) -> Any:
    y, x = random.randint(0, 16), random.randint(0, 16)
    if random.random() < 0.5:
        image = image.flip(-1)
    return image[:, y : y + 32, x : x + 32] * random.uniform(0.8, 1.2)


def augmented(images: Any) -> Any:
    return torch.stack([cropped(image) for image in images]).mean()


def bright(x: Any) -> Any:
    return x * 1.1


def dark(x: Any) -> Any:
    return x - 0.1


def inverted(x: Any) -> Any:
    return 1 - x


OPERATIONS = [bright, dark, inverted]


def one_of_several(images: Any) -> Any:
    return torch.stack([random.choice(OPERATIONS)(image) for image in images]).mean()


def in_any_order(images: Any) -> Any:
    order = list(range(len(images)))
    random.shuffle(order)
    return torch.stack([images[i] * (place + 1) for place, i in enumerate(order)]).sum()


def shuffled(images: Any) -> Any:
    images = list(images)
    random.shuffle(images)
    return sum(image.sum() * (place + 1) for place, image in enumerate(images))


def noisy(images: Any) -> Any:
    return torch.stack([image + random.gauss(0, 1) * image for image in images[1:]]).mean()


def scaled(images: Any) -> Any:
    return sum((image * random.choice([0.5, 1.0, 2.0])).sum() for image in images)


def many(images: Any) -> Any:
    x = images[0]
    for _ in range(40):
        x = x * random.uniform(0.9, 1.1) + random.random()
    return x.sum()


def layers_dropped(images: Any) -> Any:
    x = images[0]
    for _ in range(6):
        if random.random() < 0.2:
            continue
        x = x.sin() + images[1]
    return x.sum()


def one_branch(images: Any) -> Any:
    if random.random() < 0.5:
        return images[0].sum()
    return images[1].cos().sum()


def erased(images: Any) -> Any:
    found = []
    for image in images:
        if random.random() < 0.5:
            area = image.shape[1] * image.shape[2]
            for _ in range(10):
                target, ratio = random.uniform(0.02, 0.2) * area, random.uniform(0.3, 3.3)
                h, w = int(round(math.sqrt(target * ratio))), int(round(math.sqrt(target / ratio)))
                if h < image.shape[1] and w < image.shape[2]:
                    i, j = random.randint(0, image.shape[1] - h), random.randint(0, image.shape[2] - w)
                    image = image.clone()
                    image[:, i : i + h, j : j + w] = 0
                    break
        found.append(image)
    return torch.stack(found).mean()


def raised(images: Any) -> Any:
    first = random.gauss(0, 1)
    try:
        if random.random() < 0.5:
            raise ValueError(random.random())
    except ValueError as e:
        return images[0].sum() * e.args[0] + random.gauss(0, first)
    return images[1].sum() * first


class Augmentation:
    """It has a generator of its own, and asks it in a helper."""

    def __init__(self) -> None:
        self.random = random.Random(5)

    def start(self, size: int) -> int:
        return self.random.randint(0, size - 24)

    def cropped(self, image: Any) -> Any:
        y, x = self.start(image.shape[1]), self.start(image.shape[2])
        return image[:, y : y + 24, x : x + 24]

    def scaled(self, images: Any) -> Any:
        return torch.stack([self.cropped(image) * self.random.uniform(0.5, 1.5) for image in images]).sum()

    def flipped(self, images: Any) -> Any:
        parts = [self.cropped(i) if self.random.random() < 0.5 else self.cropped(i.flip(-1)) for i in images]
        return torch.stack(parts).sum()


HELD = Augmentation()


def held(images: Any) -> Any:
    return HELD.scaled(images)


def held_branch(images: Any) -> Any:
    return HELD.flipped(images)


#: with the most graphs and graph breaks that they may have
PROGRAMS: list[tuple[Callable[..., Any], int, int]] = [
    (augmented, 5, 4),
    (one_of_several, 7, 5),
    (in_any_order, 2, 1),
    (shuffled, 1, 1),
    (noisy, 1, 0),
    (scaled, 1, 0),
    (many, 1, 0),
    (layers_dropped, 5, 5),
    (one_branch, 2, 0),
    (erased, 6, 6),
    (raised, 4, 3),
    (held, 1, 0),
    (held_branch, 5, 4),
]


def outcomes(run: Any, calls: int, size: int = 48, told: Callable[[], int] = lambda: 0) -> tuple[Any, list[int]]:
    """What a program gives in some calls, with gradients and the states of generators; and what is told after each."""
    torch.manual_seed(0)
    random.seed(0)
    HELD.random = random.Random(5)
    found, after = [], []
    for _ in range(calls):
        images = [torch.rand(3, size, size).requires_grad_() for _ in range(4)]
        result = run(images)
        result.backward()
        found.append((result.detach(), [i.grad for i in images], str(random.getstate()), str(HELD.random.getstate())))
        after.append(told())
    return found, after


def assert_equal(found: Any, expected: Any) -> None:
    for (result, grads, *states), (other, others, *other_states) in zip(found, expected, strict=True):
        assert states == other_states
        assert torch.equal(result, other)
        torch.testing.assert_close(grads, others, rtol=0, atol=0)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("program", "graphs", "breaks"), PROGRAMS, ids=lambda value: getattr(value, "__name__", ""))
def test_few_graphs_with_the_draws_of_eager_execution(program: Any, graphs: int, breaks: int, backend: str) -> None:
    expected, _ = outcomes(program, 20)
    found, after = outcomes(stator.compile(program, backend=backend), 20, told=lambda: stator.stats().graphs)
    assert_equal(found, expected)
    stats = stator.stats()
    assert stats.graphs <= graphs and stats.graph_breaks <= breaks
    assert {record.code for record in stats.breaks} <= {"SB0212"}
    assert all(record.where.rpartition("/")[2].startswith(HERE) for record in stats.breaks)
    assert after[10:] == [after[10]] * 10


@pytest.mark.parametrize("program", [augmented, held, scaled])
def test_at_other_sizes(program: Any) -> None:
    compiled = stator.compile(program, backend="aot_eager")
    for size in (48, 56, 64, 48):
        assert_equal(outcomes(compiled, 4, size)[0], outcomes(program, 4, size)[0])
    assert "SB0501" not in {record.code for record in stator.stats().breaks}


@pytest.mark.parametrize("program", [augmented, held])
def test_under_inductor(program: Any) -> None:
    compiled = stator.compile(program, backend="inductor")
    for (result, grads, *states), (other, others, *other_states) in zip(
        outcomes(compiled, 4)[0], outcomes(program, 4)[0], strict=True
    ):
        assert states == other_states
        torch.testing.assert_close((result, grads), (other, others))


@pytest.mark.parametrize("program", [noisy, one_branch, raised, in_any_order])
def test_a_break_everywhere(program: Any) -> None:
    def started() -> Any:
        random.seed(4)
        return program([torch.full((2, 3), float(i)) for i in range(3)]), random.getstate()

    stator.testing.break_everywhere(started, (), spread=4)


def test_breaks_and_reasons_are_told_as_the_program_draws() -> None:
    compiled = stator.compile(augmented, backend="eager")
    outcomes(compiled, 4)
    (record,) = {(r.code, r.reason, r.where.rpartition(":")[2]) for r in stator.stats().breaks}
    line = cropped.__code__.co_firstlineno + 2
    reason = "control flow depends on a condition on random.random(), which is drawn anew in each call"
    assert record == ("SB0212", reason, str(line))
    assert not any("_randbelow" in str(each) or "random.py" in str(each) for each in stator.stats().recompile_log)


def test_what_is_kept_of_gauss_is_seen_by_the_program() -> None:
    def program(x: Any) -> Any:
        first = random.gauss(0, 1)
        between = random.Random.gauss.__name__, random._inst.gauss_next is None  # type: ignore[attr-defined]
        random._inst.gauss_next = None  # type: ignore[attr-defined]
        return x * first, between, random.gauss(1, 2), random.random()

    results = []
    for run in (program, stator.compile(program, backend="eager")):
        random.seed(2)
        results.append(([run(torch.ones(2)) for _ in range(5)], random.getstate()))
    assert str(results[0]) == str(results[1])


def test_methods_of_the_generator_s_own_are_called() -> None:
    def program(generator: random.Random, x: Any) -> Any:
        return x * generator.uniform(1, 2), generator.randint(1, 6)

    compiled = stator.compile(program, backend="eager")
    for loaded in (False, True):
        ours, own = random.Random(1), random.Random(1)
        if loaded:
            ours.random = own.random = lambda: 0.5  # type: ignore[method-assign]
        for _ in range(4):
            assert str(compiled(ours, torch.ones(2))) == str(program(own, torch.ones(2)))
            assert ours.getstate() == own.getstate()


def test_which_float_is_drawn_is_never_guarded() -> None:
    def program(x: Any) -> Any:
        number = random.random()
        return {number: x * 2}

    compiled = stator.compile(program, backend="eager")
    found = []
    for run in (program, compiled):
        random.seed(3)
        found.append(str([run(torch.ones(2)) for _ in range(12)]))
    assert found[0] == found[1]
    assert stator.stats().recompiles == 0 and {r.code for r in stator.stats().breaks} == {"SB0212"}


def test_one_way_for_good_with_fullgraph() -> None:
    compiled = stator.compile(layers_dropped, backend="eager", fullgraph=True)
    assert_equal(outcomes(compiled, 3)[0], outcomes(layers_dropped, 3)[0])


@pytest.mark.parametrize("settings", [{"dynamic": False}, {"options": {"specialize_float": True}}])
def test_where_numbers_are_not_to_be_symbols_ordinary_python_draws(settings: Any) -> None:
    def program(x: Any) -> Any:
        scale, shift = random.uniform(1, 2), random.randint(1, 5)
        numbers = [1, 2, 3]
        random.shuffle(numbers)
        return x * scale + shift + numbers[0], random.gauss(0, 1)

    results = []
    for run in (program, stator.compile(program, backend="eager", **settings)):
        random.seed(2)
        results.append(([run(torch.ones(2)) for _ in range(5)], random.getstate()))
    assert str(results[0]) == str(results[1])
    reasons = {record.reason for record in stator.stats().breaks if record.code == "SB0110"}
    assert any("random.Random.uniform" in reason for reason in reasons)


def test_a_new_generator_is_seeded_with_a_number_that_varies() -> None:
    def program(x: Any, seed: int) -> Any:
        return x * random.Random(seed).random() + random.Random(x.shape[0]).random()

    compiled = stator.compile(program, backend="eager")
    for seed in (3, 4, 5, 6, 5):
        assert torch.equal(compiled(torch.ones(seed), seed), program(torch.ones(seed), seed))


def of_its_own(rng: random.Random, x: Any) -> Any:
    rng.random = lambda: 0.25  # type: ignore[method-assign]
    first = rng.uniform(1, 2)
    del rng.random
    return x * first, rng.uniform(1, 2), rng.betavariate(1, 2), rng.triangular(0, 1), rng.expovariate(1.5)


def weighted(rng: random.Random, x: Any) -> Any:
    return x * rng.choice((0.5, 2.0)), rng.choices([1, 2, 3], k=2), rng.choices([1, 2, 3], weights=[1, 2, 3])


def named(rng: random.Random, x: Any) -> Any:
    numbers = rng.randrange(10, stop=20), rng.randrange(0, 100, 7), rng.gauss(sigma=2), rng.normalvariate(0, 1)
    return x * rng.uniform(a=1, b=2), numbers


def wrong(rng: random.Random, x: Any) -> Any:
    first = rng.random()
    try:
        rng.randint(5, 1)
    except ValueError as e:
        return x * first, str(e), rng.random()


def of_drawn_numbers(rng: random.Random, x: Any) -> Any:
    n = rng.randint(1, 5)
    m = rng.randint(0, n)
    return x[:n].sum() + m, rng.uniform(n, m), rng.random()


def seeded_between(rng: random.Random, x: Any) -> Any:
    first = rng.gauss(0, 1)
    rng.seed(4)
    return x * first, rng.gauss(0, 1), rng.random()


def asked(rng: random.Random, x: Any) -> Any:
    a, b, c = rng.gauss(0, 1), rng.random(), rng.gauss(2, 1)
    state = rng.getstate()
    d = rng.gauss(0, 1)
    rng.setstate(state)
    return x * a + b, c, d == rng.gauss(0, 1), rng.getrandbits(100)


def kept(rng: random.Random, x: Any) -> Any:
    r = rng.random()
    return x + r, [r], f"{r:.2f}", str(rng.randint(1, 9)), {rng.randint(0, 3): 1}


def until(rng: random.Random, x: Any) -> Any:
    n = 0
    while rng.random() < 0.7:
        x, n = x + 1, n + 1
    return x, n, x if rng.random() < 0.5 and rng.random() < 0.5 or rng.random() < 0.1 else -x


def whole(rng: random.Random, x: Any) -> Any:
    return (
        min(rng.random(), rng.random()) * x,
        max(1, rng.randint(0, 3)),
        int(rng.random() * 10),
        round(rng.uniform(0, 5)),
    )


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    "program",
    [of_its_own, weighted, named, wrong, of_drawn_numbers, seeded_between, asked, kept, until, whole],
)
def test_all_that_can_be_asked_of_a_generator(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for of_module in (False, True):
        found = []
        for run in (program, compiled):
            random.seed(1)
            rng = random._inst if of_module else random.Random(3)
            found.append([(str(run(rng, torch.arange(6.0))), rng.getstate(), vars(rng)) for _ in range(12)])
        assert found[0] == found[1]
