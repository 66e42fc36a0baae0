"""Numbers that NumPy's generators draw in compiled functions: the same ones as eagerly, in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import stator
from tests.pytorch.each_backend import each_backend

STATE: dict[str, Any] = {}


def unused(x: torch.Tensor) -> Any:
    np.random.uniform(0, 1)
    return x + 1


def returned_out_of_order(x: torch.Tensor) -> Any:
    first, second = np.random.uniform(0, 1), np.random.normal()
    return x + 1, second, first


def kept(x: torch.Tensor) -> Any:
    STATE["log"].append(np.random.randint(100))
    return x + len(STATE["log"])


def told(x: torch.Tensor) -> Any:
    print("drawn", np.random.rand())
    return x * 2


def seeded(x: torch.Tensor) -> Any:
    first = np.random.rand()
    np.random.seed(3)
    return x * 2, first, np.random.rand()


def of_a_generator(x: torch.Tensor) -> Any:
    rng = STATE["rng"]
    return x * 2, rng.normal(1.0, 2.0), np.random.standard_normal(), rng.random()


def layer_drop(x: torch.Tensor, training: bool = False) -> Any:
    for _ in range(3):
        chance = np.random.uniform(0, 1)
        if not (training and chance < 0.5):
            x = x.sin()
    return x


WHOLE = [unused, returned_out_of_order, kept, told, of_a_generator, layer_drop]


def decides(x: torch.Tensor) -> Any:
    return layer_drop(x, training=True)


def computes(x: torch.Tensor) -> Any:
    early = np.random.rand()
    return x * np.random.uniform(), early


def an_array(x: torch.Tensor) -> Any:
    early = np.random.rand()
    return x + torch.from_numpy(np.random.rand(2)), early


def raises(x: torch.Tensor) -> Any:
    STATE["log"].append(np.random.rand())
    raise ValueError(len(STATE["log"]))


def fails(x: torch.Tensor) -> Any:
    try:
        np.random.rand()
        return x[torch.tensor([7])], np.random.rand()
    except IndexError:
        return x, np.random.rand()


def wrong_arguments(x: torch.Tensor) -> Any:
    return np.random.normal(0, -1)


BREAKING = [seeded, decides, computes, an_array, raises, fails, wrong_arguments]


def run(function: Any, capsys: Any) -> Any:
    np.random.seed(0)
    STATE.update(rng=np.random.default_rng(7), log=[])
    found = []
    for _ in range(3):
        try:
            found.append(str(function(torch.ones(2))))
        except Exception as e:
            found.append((type(e), str(e)))
    state: Any = np.random.get_state()
    return found, STATE["log"], STATE["rng"].bit_generator.state, str(state[1].tolist()), state[2:], capsys.readouterr()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", WHOLE)
def test_one_graph(function: Any, backend: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = run(function, capsys)
    assert run(stator.compile(function, backend=backend, fullgraph=True), capsys) == expected


@pytest.mark.parametrize("function", BREAKING)
def test_with_breaks(function: Any, capsys: pytest.CaptureFixture[str]) -> None:
    expected = run(function, capsys)
    assert run(stator.compile(function, backend="eager"), capsys) == expected


@pytest.mark.parametrize("function", WHOLE)
def test_a_break_everywhere(function: Any) -> None:
    def started() -> Any:
        np.random.seed(0)
        STATE.update(rng=np.random.default_rng(7), log=[])
        return function(torch.ones(2)), np.random.rand()

    stator.testing.break_everywhere(started, (), spread=6)


# -- numbers that operations are given: inputs of the graph ------------------------------------------------------------


def scaled(x: Any) -> Any:
    return x.sin() * np.random.rand() + np.random.uniform(1, 2)


def mixed(x: Any) -> Any:
    part = np.random.beta(0.4, 0.4)
    return part * x + (1 - part) * x.flip(0), part


def several(x: Any) -> Any:
    first = np.random.normal()
    unused = np.random.rand()
    return (x - first).exp(), x * np.random.randint(1, 5), first, unused


def of_two_generators(x: Any) -> Any:
    rng = STATE["rng"]
    first, second, third = rng.random(), np.random.rand(), rng.normal(1.0, 2.0)
    return x * first + second * third, third


def across_a_break(x: Any) -> Any:
    y = x * np.random.rand()
    stator.graph_break()
    return y + np.random.rand()


def drawn_on(x: Any) -> Any:
    for _ in range(3):
        x = x * np.random.uniform(0.5, 1.5)
    return x


@pytest.mark.parametrize(
    ("program", "backend"),
    each_backend(
        [scaled, mixed, several, of_two_generators, across_a_break, drawn_on], inductor=[mixed, across_a_break]
    ),
)
def test_an_operation_is_given_what_was_drawn(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    outcomes = []
    for run in (program, compiled):
        np.random.seed(11)
        STATE.update(rng=np.random.default_rng(5), log=[])
        found: list[Any] = []
        for size in (3, 3, 5, 4, 4):
            x = torch.linspace(-1, 1, size).requires_grad_()
            result = run(x)
            parts = result if isinstance(result, tuple) else (result,)
            sum(part.sum() for part in parts if isinstance(part, torch.Tensor)).backward()  # type: ignore[union-attr]
            detached = [part.detach() if isinstance(part, torch.Tensor) else part for part in parts]
            found.append((detached, x.grad, np.random.rand(), STATE["rng"].random()))
        outcomes.append(found)
    torch.testing.assert_close(*outcomes, rtol=1e-5, atol=1e-6)
    stats = stator.stats()
    assert {b.code for b in stats.breaks} == ({"SB0301"} if program is across_a_break else set())
    assert stats.graphs <= (4 if program is across_a_break else 2)


@pytest.mark.parametrize("bits", [np.random.MT19937, np.random.PCG64, np.random.Philox])
@pytest.mark.parametrize("kind", [np.random.RandomState, np.random.Generator])
def test_generators_of_other_bits(kind: Any, bits: Any) -> None:
    def program(x: Any) -> Any:
        return x * STATE["rng"].normal(), STATE["rng"].uniform()

    compiled = stator.compile(program, backend="eager")
    outcomes = []
    for run in (program, compiled):
        STATE.update(rng=kind(bits(3)), log=[])
        outcomes.append([run(torch.ones(2)) for _ in range(4)])
    torch.testing.assert_close(*outcomes)


def test_more_draws_than_are_worth_it_break() -> None:
    def program(x: Any) -> Any:
        for _ in range(300):
            x = x + np.random.rand()
        return x

    compiled = stator.compile(program, backend="eager")
    outcomes = []
    for run in (program, compiled):
        np.random.seed(2)
        outcomes.append([run(torch.ones(2)) for _ in range(3)])
    torch.testing.assert_close(*outcomes)
    assert stator.stats().graph_breaks


def test_a_generator_s_state_in_inference_mode_is_no_reason_to_compile_anew():
    generator = torch.Generator().manual_seed(0)

    def draw(p):
        with torch.inference_mode():
            k = torch.multinomial(p, 1, generator=generator)[0]
            return (p / 2)[k].item(), p[p.argmax()].item()

    stator.reset()
    compiled = stator.compile(draw, backend="eager", fullgraph=True)
    p = torch.tensor([0.1, 0.2, 0.7])
    got = [compiled(p) for _ in range(5)]
    generator.manual_seed(0)
    assert got == [draw(p) for _ in range(5)]
    assert not stator.stats().recompile_log


# -- arrays, and numbers that decide -----------------------------------------------------------------------------------


def an_array_of_noise(x: Any) -> Any:
    noise = STATE["rng"].normal(size=x.shape[0])
    return x + torch.from_numpy(noise), noise


def written(x: Any) -> Any:
    noise = np.random.uniform(0, 1, (2, 6))
    noise *= 2
    return x * torch.as_tensor(noise), noise


def permuted(x: Any) -> Any:
    order = STATE["rng"].permutation(6)
    return x[torch.from_numpy(order)], order, np.random.choice(6, size=3, replace=False)


def cropped(x: Any) -> Any:
    start = STATE["rng"].integers(0, 5)
    return x[start:], start, x[int(start)], type(start)


def by_name(x: Any) -> Any:
    return x * np.random.normal(loc=1.0, scale=2.0), STATE["rng"].uniform(low=0, high=2)


def seeded_again(x: Any) -> Any:
    first = np.random.rand()
    np.random.seed(3)
    return x * first, np.random.rand()


def one_of_two(x: Any) -> Any:
    return x if STATE["rng"].random() < 0.5 else -x


def many(x: Any) -> Any:
    for _ in range(20):
        x = x * np.random.uniform(0.9, 1.1)
    return x, np.random.normal()


def wrong(x: Any) -> Any:
    first = np.random.rand()
    try:
        np.random.normal(0, -1)
    except ValueError as e:
        return x * first, str(e), np.random.normal()


def of_shared_bits(x: Any) -> Any:
    return x * STATE["rng"].random(), STATE["other"].random(), STATE["rng"].random()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize(
    ("program", "graphs", "breaks"),
    [
        (an_array_of_noise, 1, 0),
        (written, 1, 0),
        (permuted, 1, 0),
        (cropped, 1, 0),
        (by_name, 1, 0),
        (seeded_again, 1, 0),
        (one_of_two, 2, 0),
        (many, 1, 0),
        (wrong, 2, 2),
        (of_shared_bits, 2, 2),
    ],
)
def test_what_is_drawn_is_an_input(program: Any, graphs: int, breaks: int, backend: str) -> None:
    found = []
    for run in (program, stator.compile(program, backend=backend)):
        np.random.seed(1)
        bits = np.random.PCG64(3)
        STATE.update(rng=np.random.Generator(bits), other=np.random.Generator(bits), log=[])
        told = [(str(run(torch.arange(6.0))), str(bits.state), np.random.rand()) for _ in range(12)]
        found.append((told, str(np.random.get_state())))
    assert found[0] == found[1]
    stats = stator.stats()
    assert stats.graphs <= graphs and stats.graph_breaks <= breaks


def test_in_a_loop_a_branch_breaks() -> None:
    def program(x: Any) -> Any:
        parts = []
        for part in x:
            parts.append(part.flip(0) if np.random.rand() < 0.5 else part)
        return torch.stack(parts)

    found = []
    for run in (program, stator.compile(program, backend="eager")):
        np.random.seed(1)
        found.append(str([run(torch.arange(16.0).view(4, 4)) for _ in range(20)]))
    assert found[0] == found[1]
    assert {record.code for record in stator.stats().breaks} == {"SB0212"}
    assert stator.stats().frames <= 7


@pytest.mark.parametrize("program", [returned_out_of_order, kept, told, of_a_generator, layer_drop])
def test_where_numbers_are_not_to_be_symbols_they_are_drawn_later(program: Any, capsys: Any) -> None:
    expected = run(program, capsys)
    assert run(stator.compile(program, backend="eager", fullgraph=True, dynamic=False), capsys) == expected
