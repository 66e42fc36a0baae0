"""Random generators, seeds and states in a trace: the numbers, gradients and states are exactly those of eager."""

import copy

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

import stator

G = torch.Generator
OUTSIDE = G()


def as_argument(x, g):
    return x * torch.rand(3, generator=g) + torch.rand_like(x, generator=g)


def in_a_global(x, g):
    return x + torch.randn(x.shape, generator=OUTSIDE)


def made_inside(x, g):
    h = G()
    h.manual_seed(5)
    return x + torch.randn(3, generator=h), torch.randperm(4, generator=h), G().manual_seed(2), h


def in_place(x, g):
    y = x.clone()
    y.normal_(generator=g)
    z = torch.empty(3, 4).t().uniform_(0, 2, generator=g)
    w = nn.init.kaiming_uniform_(torch.empty(4, 3), generator=g)
    return y + x, z, w, torch.bernoulli(torch.full((3,), 0.5), generator=g), torch.zeros(20).exponential_(generator=g)


def states(x, g):
    seed = g.initial_seed()
    before = g.get_state()
    a = torch.rand(3, generator=g)
    between = g.get_state()
    g.set_state(before)
    b = torch.rand(3, generator=g)
    g.set_state(between)
    return x * a + b, before, between, seed, len(g.device.type)


def cloned(x, g):
    h = g.clone_state()
    return x + torch.rand(3, generator=g), torch.rand(3, generator=h), h.get_state()


def seeded(x, g):
    torch.manual_seed(3)
    return x + torch.rand(3), torch.initial_seed()


def seeded_after_a_draw(x, g):
    a = torch.rand(2)
    torch.manual_seed(4)
    return F.dropout(x.sin(), 0.5), a, torch.randn_like(x), torch.initial_seed()


def seeded_twice(x, g):
    torch.manual_seed(1)
    a = torch.rand(3)
    torch.manual_seed(1)
    return x + a, torch.rand(3), torch.normal(x.detach(), 1.0), torch.multinomial(torch.ones(5), 2)


def forked(x, g):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        y = torch.rand(3)
    return x + y + torch.rand(3)


def forked_unseeded(x, g):
    with torch.random.fork_rng():
        y = F.dropout(x, 0.3)
    return x + y, torch.rand(3)


def restored(x, g):
    state = torch.get_rng_state()
    a = torch.rand(3)
    middle = torch.get_rng_state()
    torch.set_rng_state(state)
    return x * a, torch.rand(3), middle, torch.rand(2, generator=torch.default_generator)


def several(x, g):
    h = G().manual_seed(1)
    total = x
    for generator in (g, h, g, OUTSIDE):
        total = total + torch.randint(0, 10, (3,), generator=generator)
    return total, torch.rand(2)


PROGRAMS = [
    *(as_argument, in_a_global, made_inside, in_place, states, cloned, seeded, seeded_after_a_draw, seeded_twice),
    *(forked, forked_unseeded, restored, several),
]


def readable(out):
    if isinstance(out, tuple):
        return tuple(map(readable, out))
    return out.get_state() if isinstance(out, G) else out


def outcome(function, size, calls=1):
    torch.manual_seed(size)
    OUTSIDE.manual_seed(size)
    g = G().manual_seed(size)
    x = torch.randn(size, 3, requires_grad=True)
    found = []
    for _ in range(calls):
        out = readable(function(x, g))
        first = out[0] if isinstance(out, tuple) else out
        (first * 2).sum().backward()
        found.append(out)
    return found, x.grad, g.get_state(), OUTSIDE.get_state(), torch.get_rng_state()


def check(function, backend, tolerance=0.0):
    compiled = stator.compile(function, backend=backend, fullgraph=True)
    for size in (4, 4, 7):
        got, expected = outcome(compiled, size, 2), outcome(function, size, 2)
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)
    assert stator.stats().graphs <= 2


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", PROGRAMS)
def test_programs(function, backend):
    check(function, backend)


@pytest.mark.parametrize("function", [as_argument, seeded_after_a_draw])
def test_with_inductor(function):
    compiled = stator.compile(function, backend="inductor", fullgraph=True)
    got, expected = outcome(compiled, 4), outcome(function, 4)
    if function is as_argument:
        torch.testing.assert_close(got, expected)
    else:  # inductor's own numbers, up to where the program seeds
        torch.testing.assert_close(got[0][0][0], expected[0][0][0])
        torch.testing.assert_close(got[0][0][2:], expected[0][0][2:])
        torch.testing.assert_close(got[1:], expected[1:])


def test_one_generator_by_two_names_is_another_trace():
    def f(x, g, h):
        return x + torch.rand(3, generator=g), torch.rand(3, generator=h), torch.rand(3, generator=g)

    compiled = stator.compile(f, backend="eager", fullgraph=True)
    for same in (False, True, False):
        results = []
        for run in (f, compiled):
            g = G().manual_seed(1)
            results.append((run(torch.zeros(3), g, g if same else G().manual_seed(2)), g.get_state()))
        torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)


def test_the_default_generator_as_an_argument():
    compiled = stator.compile(as_argument, backend="aot_eager", fullgraph=True)
    for default in (False, True, False):
        results = []
        for run in (as_argument, compiled):
            torch.manual_seed(2)
            g = torch.default_generator if default else G().manual_seed(2)
            results.append((run(torch.ones(3), g), torch.get_rng_state()))
        torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)


def test_breaks_keep_the_state():
    def f(x, g):
        torch.manual_seed(3)
        a = torch.rand(3)
        b = torch.rand(3, generator=g)
        stator.graph_break()
        return x + a + b, torch.rand(3), torch.rand(3, generator=g)

    compiled = stator.compile(f, backend="aot_eager")
    for size in (4, 4, 7):
        torch.testing.assert_close(outcome(compiled, size), outcome(f, size), rtol=0, atol=0)
    assert stator.stats().graph_breaks == 1


def test_what_is_not_known_breaks():
    def f(x, g):
        a = torch.rand(3)
        state = torch.get_rng_state()
        return x + a, state, torch.rand(3)

    def seeds(x, g):
        g.seed()
        return x + torch.rand(3, generator=g).clamp(1, 1)

    compiled = stator.compile(f, backend="aot_eager")
    torch.testing.assert_close(outcome(compiled, 4), outcome(f, 4), rtol=0, atol=0)
    assert stator.stats().graph_breaks == 1
    stator.compile(seeds, backend="eager")(torch.ones(3), G())


def test_dropout_in_place_after_a_seed():
    def f(x, g):
        torch.manual_seed(3)
        y = x * 2
        F.dropout(y, 0.5, inplace=True)
        return y

    compiled = stator.compile(f, backend="aot_eager")
    torch.testing.assert_close(outcome(compiled, 4), outcome(f, 4), rtol=0, atol=0)


def test_errors_are_those_of_eager():
    def f(x, g):
        try:
            g.set_state(torch.zeros(3, dtype=torch.uint8))
        except RuntimeError as e:
            return x, str(e)

    def h(x, g):
        try:
            return x, str(g.manual_seed("a"))
        except RuntimeError as e:
            return x, str(e)

    for function in (f, h):
        assert stator.compile(function, backend="eager")(torch.ones(1), G())[1] == function(torch.ones(1), G())[1]


def test_a_graph_that_fails_has_drawn_nothing():
    def f(x, i, g):
        a = torch.rand(3, generator=g)
        torch.manual_seed(1)
        return x[i] * a, torch.rand(2)

    compiled = stator.compile(f, backend="aot_eager")
    x, good, bad = torch.ones(3), torch.tensor([0, 1, 2]), torch.tensor([0, 1, 9])
    for index in (good, bad, good):
        results = []
        for run in (f, compiled):
            torch.manual_seed(5)
            g = G().manual_seed(5)
            try:
                out = run(x, index, g)
            except IndexError:
                out = ()
            results.append((out, g.get_state(), torch.get_rng_state()))
        torch.testing.assert_close(results[1], results[0], rtol=0, atol=0)


def test_a_module_that_draws():
    class Noisy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.generator = G().manual_seed(7)
            self.layer = nn.Linear(3, 3)

        def forward(self, x):
            return self.layer(x) + torch.randn(x.shape[0], 1, generator=self.generator)

    torch.manual_seed(0)
    module = Noisy()
    other = Noisy()
    other.load_state_dict(copy.deepcopy(module.state_dict()))
    compiled = stator.compile(module, backend="aot_eager", fullgraph=True)
    for size in (4, 4, 7):
        x = torch.ones(size, 3)
        torch.testing.assert_close(compiled(x), other(x))
    torch.testing.assert_close(module.generator.get_state(), other.generator.get_state())
