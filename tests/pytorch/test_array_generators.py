"""NumPy's random generators: those that the compiled function seeds draw in the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import stator
from tests.pytorch.programs import agree, assert_same


def shown(result: Any) -> Any:
    """The same with tensors and data types in the place of arrays, for a comparison."""
    if isinstance(result, tuple):
        return tuple(map(shown, result))
    return ("array", str(result.dtype), torch.tensor(result)) if isinstance(result, np.ndarray) else result


def legacy(x: Any) -> Any:
    rng = np.random.RandomState(3)
    return x + torch.as_tensor(rng.rand(3).astype(np.float32)), rng.randint(10), rng.randn(2, 2)


def new(x: Any) -> Any:
    rng = np.random.default_rng(seed=0)
    rows = rng.integers(0, x.shape[0], size=2)
    return x[torch.from_numpy(rows)], rng.normal(), rng.choice(5, size=3, replace=False), rng.random(dtype=np.float32)


def seeded(x: Any) -> Any:
    np.random.seed(1)
    noise = np.random.randn(x.shape[0], 1).astype(np.float32)
    return x * np.random.rand() + torch.from_numpy(noise), np.random.uniform(-1, 1, 2), np.random.permutation(4)


def arrays_differ(x: Any) -> Any:
    rng = np.random.RandomState(3)
    first, second = rng.rand(3), rng.rand(3)
    first += second
    return first, second, x.sum()


PROGRAMS: list[Callable[[Any], Any]] = [legacy, new, seeded, arrays_differ]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_what_a_seeded_generator_draws_is_in_the_graph(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for rows in (4, 4, 5, 7):
        x = torch.arange(3.0 * rows).reshape(rows, 3)
        assert_same(shown(compiled(x)), shown(program(x)), f"{rows} rows", rtol=1e-6)
        np.random.seed(5)


def test_inductor_takes_what_is_drawn() -> None:
    x = torch.arange(12.0).reshape(4, 3)
    compiled = stator.compile(legacy, backend="inductor", fullgraph=True)
    assert_same(shown(compiled(x)), shown(legacy(x)), "inductor", rtol=1e-6)


def test_arrays_are_new_in_each_call() -> None:
    compiled = stator.compile(arrays_differ, backend="eager", fullgraph=True)
    first = compiled(torch.ones(2))[0]
    first[...] = 100
    assert_same(shown(compiled(torch.ones(2))), shown(arrays_differ(torch.ones(2))), "again")


def test_the_state_of_numpys_own_generator_is_left_behind() -> None:
    compiled = stator.compile(seeded, backend="eager", fullgraph=True)
    for _ in range(2):
        np.random.seed(9)
        compiled(torch.ones(3, 3))
        found = np.random.rand()
        seeded(torch.ones(3, 3))
        assert found == np.random.rand()


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_a_generator_goes_on_outside(make: Any) -> None:
    def program(x: Any) -> Any:
        rng = make(7)
        rng.normal()
        return rng, x + 1

    compiled = stator.compile(program, backend="eager", fullgraph=True)
    for _ in range(2):
        (found, _), (wanted, _) = compiled(torch.ones(2)), program(torch.ones(2))
        assert type(found) is type(wanted) and found.normal() == wanted.normal() and found.uniform() == wanted.uniform()


def test_a_break_in_between() -> None:
    def program(x: Any) -> Any:
        rng = np.random.default_rng(2)
        y = x * float(rng.random())
        stator.graph_break()
        return y + float(rng.random())

    agree(lambda: (program, (torch.ones(3),)), breaks=None, rtol=1e-6)


FAILING: dict[str, Any] = {
    "a seed": lambda x: np.random.RandomState(-1),
    "a scale": lambda x: np.random.default_rng(0).normal(0, -1),
    "a method": lambda x: np.random.default_rng(0).rand(3),
}


@pytest.mark.parametrize("name", FAILING)
def test_numpy_words_the_error(name: str) -> None:
    agree(lambda: (FAILING[name], (torch.ones(2),)), breaks=None)


UNKNOWN: dict[str, Any] = {
    "of the system": lambda x: np.random.default_rng().random() * 0,
    "into an array": lambda x: (lambda a: (np.random.default_rng(0).shuffle(a), a)[1])(np.arange(4)),
    "into a list": lambda x: (lambda a: (np.random.RandomState(0).shuffle(a), a)[1])([1, 2, 3, 4]),
    "of an array": lambda x: np.random.default_rng(0).permutation(np.arange(4)),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_breaks(name: str) -> None:
    stator.reset()
    compiled = stator.compile(UNKNOWN[name], backend="eager")
    assert_same(shown(compiled(torch.ones(2))), shown(UNKNOWN[name](torch.ones(2))), name)
    assert stator.stats().graph_breaks
