"""Functions of sizes that torch has no symbols for: CPython computes them again at each call."""

import math
import time

import pytest
import torch

import stator
from tests.pytorch.each_backend import each_backend
from tests.pytorch.old_torch import OLD_TORCH

PROGRAMS = [
    lambda x: x * math.cos(x.size(0)),
    lambda x: x * math.log(x.size(0) * 3.5 + 1),
    lambda x: x * math.pow(x.size(0), 0.5),
    lambda x: x * math.hypot(x.size(0), x.size(1)),
    lambda x: x * (x.size(0) & 6) * (x.size(1) << 2),
    lambda x: x * round(x.size(0) * 10, -1),
    lambda x: x * round(x.size(0) / 3) + math.ceil(x.size(0) / 2) - math.floor(x.size(0) * 0.7),
    lambda x: x * sum(divmod(x.size(0), 7)),
    lambda x: x * math.log(torch.cat([x, x]).size(0)),
    lambda x: x * math.log(torch.div(x.size(0) * 2, 8, rounding_mode="trunc").item()),
    lambda x: x + (1 if math.isclose(x.size(0) * 0.5, 1.0) else 2),
]


def slopes_of(run, size):
    """What it gives for a tensor of so many rows, and the gradient."""
    x = torch.ones(size, 3, requires_grad=True)
    y = run(x)
    y.sum().backward()
    return y.detach(), x.grad


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_sizes_that_vary_are_two_graphs(number, backend):
    program = PROGRAMS[number]
    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for size in (14, 20, 30, 43, 15):
        torch.testing.assert_close(slopes_of(compiled, size), slopes_of(program, size), rtol=0, atol=0)
    assert stator.stats().graphs == 2


SMALL = [
    (lambda x: x * (x.size(0) >> 1), 2),
    (lambda x: x * round(x.size(0), -1), 2),
    (lambda x: x * math.floor(math.log(x.size(0))), 2),
    (lambda x: x[x.size(0) >> 2 :] * 2, 3),
    (lambda x: x + torch.ones(x.size(0) >> 2, 3).sum(0), 4),  # no row, one that is every row, or rows
]


@pytest.mark.parametrize(("number", "backend"), each_backend(range(len(SMALL)), inductor=[3, 4]))
def test_a_number_that_is_zero_or_one_now_is_not_for_ever(number, backend):
    program, most = SMALL[number]
    stator.reset()
    compiled = stator.compile(program, backend=backend)
    for size in (2, 3, 4, 9, 3, 17):
        torch.testing.assert_close(slopes_of(compiled, size), slopes_of(program, size))
    assert stator.stats().graphs <= most


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_loop_over_what_is_computed_by_tensors_is_one_graph(backend):
    def halves(x):
        n = torch.div(x.size(0) * 2, 4, rounding_mode="trunc")
        return sum([x[i] for i in range(n)]) * n.item()

    compiled = stator.compile(halves, backend=backend)
    for size in (4, 10, 14, 6, 7):
        x = torch.rand(size, 3)
        torch.testing.assert_close(compiled(x), halves(x), rtol=0, atol=0)
    assert stator.stats().graph_breaks == 0
    assert all(x in stator.stats().recompile_log[1].reason for x in ("torch.div(2*x.size(0), 4) == 5", "is 7"))


def test_an_error_is_the_program_s_own():
    compiled = stator.compile(lambda x: x * math.log(x.size(0) - 5), backend="eager")
    for size in (7, 8, 9):
        compiled(torch.ones(size))
    with pytest.raises(ValueError, match="math domain error"):
        compiled(torch.ones(5))
    assert compiled(torch.ones(10))[0].item() == pytest.approx(math.log(5))


FAILING = [
    lambda n: 10 // (n - 4),
    lambda n: 10 % (n - 4),
    lambda n: 10 / (n - 4),
    lambda n: divmod(10, n - 4),
    lambda n: math.sqrt(n - 6),
    lambda n: math.log(n - 4),
    lambda n: 0 ** (n - 5),
    lambda n: 1 << (n - 5),
    lambda n: [1, 2, 3, 4, 5][n],
    lambda n: "ab" * (n - 5),
    lambda n: list(range(0, 10, n - 4)),
]


@pytest.mark.parametrize("of_size", [False, True])
@pytest.mark.parametrize("number", range(len(FAILING)))
def test_an_error_of_one_number_is_not_that_of_another(number, of_size):
    program = FAILING[number]

    def caught(x, n):
        try:
            return program(x.size(0) if of_size else n)
        except (ArithmeticError, ValueError, LookupError) as e:
            return type(e), str(e)

    for order in ([3, 4, 5, 6], [4, 5, 6, 7, 4], [8, 9, 7, 6, 5, 4, 3]):
        stator.reset()
        compiled = stator.compile(caught, backend="eager", fullgraph=True)
        for n in order:
            want = caught(torch.ones(n), n)
            got = compiled(torch.ones(n), n)
            assert type(got) is type(want) and got == want, (order, n)


class Rate:
    """A learning rate, and how it goes on."""

    def __init__(self, rule):
        self.rule, self.rate, self.steps = rule, 0.5, 1

    def step(self, x):
        y = x * self.rate
        self.steps += 1
        self.rate = self.rule(self.rate, self.steps)
        return y


RULES = {
    "a quotient": lambda rate, steps: rate * (1 + 0.5 / (1.5 + (steps - 1) * 0.5)),
    "a quotient that may fail": lambda rate, steps: rate / (steps - 8),
    "a power": lambda rate, steps: rate * (1 - steps / 50) ** 0.9,
    "a cosine": lambda rate, steps: 0.1 + (rate - 0.1) * (1 + math.cos(steps / 9)) / (1 + math.cos((steps - 1) / 9)),
}


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("rule", RULES)
def test_a_float_that_is_left_behind_is_no_constant_to_the_backend(rule, backend):
    plain, traced = Rate(RULES[rule]), Rate(RULES[rule])
    step = stator.compile(traced.step, backend=backend)
    for _ in range(12):
        outcomes = []
        for run, state in ((plain.step, plain), (step, traced)):
            x = torch.ones(3, requires_grad=True)
            try:
                y = run(x)
                y.sum().backward()
                outcomes.append((y.tolist(), x.grad.tolist(), state.rate, state.steps))
            except ZeroDivisionError as e:
                outcomes.append((str(e), state.rate, state.steps))
        assert outcomes[0] == outcomes[1]
    assert stator.stats().graphs <= 2 + rule.endswith("fail")


def test_a_schedule_in_the_region_is_two_graphs():
    weight = torch.ones(4, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)

    @stator.compile(backend="aot_eager")
    def step(x):
        (weight * x).square().sum().backward()
        with torch.no_grad():
            weight.sub_(weight.grad * optimizer.param_groups[0]["lr"])
        weight.grad = None
        scheduler.step()

    optimizer.step()
    for i in range(1, 10):
        step(torch.ones(4))
        assert scheduler.get_last_lr()[0] == pytest.approx(0.05 * (1 + math.cos(math.pi * i / 20)), rel=1e-12)
    assert stator.stats().graphs == 2


def padded(x, y):
    rows = [x, y, x[1:]]
    out = torch.zeros(3, max(row.size(0) for row in rows))
    for i, row in enumerate(rows):
        out[i, : row.size(0)] = row
    return out


EXTREMES = {
    "the shorter": lambda x, y: x[: min(x.size(0), y.size(0))] * y[: min(y.size(0), x.size(0))],
    "at most": lambda x, y: x[: min(x.size(0), 8)] * max(x.size(0), y.size(0), 5),
    "the last": lambda x, y: x[max(0, x.size(0) - 8) :] * 2 + x[-min(8, x.size(0)) :].sum(),
    "padded to": lambda x, y: torch.nn.functional.pad(x, (0, max([0, 16 - x.size(0)]))),
    "the best": lambda x, y: x.topk(min(10, x.size(0)))[0],
    "of a generator": padded,
}


CASES = [(name, backend) for name in EXTREMES for backend in ("eager", "aot_eager")] + [("at most", "inductor")]


@pytest.mark.parametrize(("name", "backend"), CASES)
def test_the_larger_of_two_sizes_is_no_branch(name, backend):
    program = EXTREMES[name]
    compiled = stator.compile(program, backend=backend)
    for sizes in ((7, 5), (9, 12), (4, 3), (3, 14), (19, 6), (8, 8), (16, 17)):
        results = []
        for run in (program, compiled):
            x, y = (torch.linspace(0, 1, n, requires_grad=True) for n in sizes)
            z = run(x, y)
            z.sum().backward()
            results.append((z.detach(), x.grad, y.grad))
        torch.testing.assert_close(results[1], results[0])
    # Inductor of torch 2.13 makes assumptions of sizes, as many as it likes.
    assert stator.stats().graphs == 2 or (OLD_TORCH and backend == "inductor")


def test_the_larger_of_unlike_things_is_the_one_that_it_was():
    def extremes(x, n, rate):
        large = 2**70
        return (
            max(n, rate),
            max(True, n),
            min(n, 3.0, n),
            max([n, large]),
            max(n, 5, key=lambda v: -v),
            min((), default=n),
        )

    compiled = stator.compile(extremes, backend="eager")
    for n in (2, 3, 4, 1, 0, 9):
        found = compiled(torch.ones(1), n, n - 0.5)
        assert [*map(repr, found)] == [*map(repr, extremes(None, n, n - 0.5))]


TENSORS = {
    "alone": lambda x, rate: x * torch.tensor(rate),
    "and as a number": lambda x, rate: x * torch.tensor(rate) + rate,
    "of a type": lambda x, rate: x * torch.as_tensor(rate, dtype=torch.float64),
    "written": lambda x, rate: (x * torch.tensor(rate).add_(1), torch.tensor(rate)),
    "the same": lambda x, rate: (torch.tensor(rate, dtype=torch.float64).mul_(2), torch.tensor(rate), x * rate),
    "of two": lambda x, rate: x * torch.tensor(rate) * torch.tensor(rate * 2).item(),
    "computed": lambda x, rate: x * torch.tensor(math.sqrt(1 + rate**2) / (2 + rate)),
    "computed with a size": lambda x, rate: x * torch.tensor(rate * x.size(0), dtype=torch.float64),
    "of a tensor": lambda x, rate: x * torch.tensor(x.detach().sum().item() * rate),
}


@pytest.mark.parametrize(
    ("name", "backend"), each_backend(TENSORS, inductor=["written", "the same", "computed with a size"])
)
def test_a_tensor_of_a_float_that_varies_is_an_input(name, backend):
    program = TENSORS[name]
    compiled = stator.compile(program, backend=backend)
    for size, rate in ((3, 0.1), (3, 0.2), (4, 1 / 3), (5, 1.0), (6, 1e-40), (7, -0.0)):
        results = []
        for run in (program, compiled):
            x = torch.ones(size, requires_grad=True)
            found = run(x, rate)
            y = found if isinstance(found, torch.Tensor) else found[0]
            (slope,) = torch.autograd.grad(y.sum(), x, allow_unused=True) if y.requires_grad else (None,)
            results.append((found, slope))
        torch.testing.assert_close(results[1], results[0], rtol=1e-6, atol=0)
    assert stator.stats().graphs <= (6 if name in ("of two", "of a tensor") else 3)


def test_an_error_in_what_a_tensor_is_made_of():
    def program(x, rate):
        return x * torch.tensor(math.sqrt(1 - rate**2) / (0.5 - rate))

    compiled = stator.compile(program, backend="eager")
    for rate in (0.1, 0.2, 0.3, 0.5, 2.0, 0.4, -0.5):
        outcomes = []
        for run in (program, compiled):
            try:
                outcomes.append(run(torch.ones(2), rate).tolist())
            except (ArithmeticError, ValueError) as e:
                outcomes.append(repr(e))
        assert outcomes[0] == outcomes[1], rate


class Padded(torch.nn.Module):
    """Pads by a number that it computes of the length and of scalars that are its buffers, as codecs of audio do."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(1, 1, 4, 2)
        self.register_buffer("kernel", torch.tensor(4))
        self.register_buffer("stride", torch.tensor(2))

    def forward(self, x):
        length = x.shape[-1]
        frames = torch.ceil((length - self.kernel) / self.stride + 1).to(torch.int64) - 1
        extra = frames * self.stride + self.kernel - length
        if max(extra, self.stride) > 3:
            x = x * 2
        return self.conv(torch.nn.functional.pad(x, (self.stride, extra)))


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_scalars_of_modules_and_sizes(backend):
    model = torch.nn.Sequential(Padded(), Padded(), Padded())
    compiled = stator.compile(model, backend=backend, fullgraph=True)
    for length in (21, 34) if backend == "inductor" else (21, 34, 40, 55, 28):
        left = []
        for run in (compiled, model):
            x = torch.arange(float(length)).sin().reshape(1, 1, length).requires_grad_()
            y = run(x)
            left.append((y, *torch.autograd.grad(y.sum(), (x, *model.parameters()))))
        torch.testing.assert_close(left[0], left[1], rtol=1e-5, atol=1e-5)
    assert stator.stats().graphs <= 3


def test_scalars_of_modules_that_change():
    model = Padded()
    compiled = stator.compile(model, backend="aot_eager")
    for length, kernel in ((21, 4), (34, 4), (40, 5), (41, 6), (28, 4)):
        model.kernel = torch.tensor(kernel)
        x = torch.arange(float(length)).sin().reshape(1, 1, length)
        torch.testing.assert_close(compiled(x), model(x))
        model.kernel += 1
        torch.testing.assert_close(compiled(x), model(x))


def test_a_branch_on_what_is_computed_of_a_size():
    def program(x):
        return x * 2 if torch.div(torch.tensor(x.size(0)), 2, rounding_mode="floor") > 4 else x * 3

    compiled = stator.compile(program, backend="aot_eager", fullgraph=True)
    for size in (5, 6, 7, 12, 13, 8):
        x = torch.ones(size)
        torch.testing.assert_close(compiled(x), program(x))
    assert stator.stats().graphs == 3


def test_a_call_that_breaks_decides_no_number():
    """Of a count that is divided by a time nothing need be known: the division breaks the graph."""

    def step(x, counter):
        counter.n += 1
        rate = counter.n / (time.time() - counter.began)
        return x * 2, rate > 0

    class Counter:
        n, began = 0, time.time() - 1.0

    compiled, before, counter = stator.compile(step, backend="eager"), stator.stats(), Counter()
    for _ in range(8):
        assert torch.equal(compiled(torch.ones(3), counter)[0], torch.ones(3) * 2)
    assert counter.n == 8
    assert not any("counter.n ==" in record.reason for record in stator.stats().diff(before).recompile_log)
    assert stator.stats().diff(before).graphs <= 3


def _added(score, x):
    return score + x.sum().item(), x * 2


def _kept(score, x):
    best = score - x.max().item() * 0.5
    passed = best * 2 + 1 == -1.2999999999999998, (best > 0) | (best < -1)
    return [(-best, "kept"), (abs(best), best * 2 + 1), best / 3, passed]


def _both(score, x):
    total = score * 3 + x.sum().item()
    return x * total, total


@pytest.mark.parametrize(("program", "backend"), each_backend([_added, _kept, _both], inductor=[_added, _kept, _both]))
def test_a_float_and_what_tensors_hold_is_computed_by_python(program, backend):
    stator.reset()
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for score, size in ((0.1, 3), (0.25, 3), (-3.3, 3), (7.77, 3), (0.3, 4), (1e-9, 5)):
        x = (torch.arange(float(size)) + 0.5).requires_grad_()
        got, expected = compiled(score, x), program(score, x)
        if program is _both:
            torch.testing.assert_close(got[0], expected[0])
            assert got[1] == expected[1]
            slopes = [torch.autograd.grad(result[0].sum(), x)[0] for result in (got, expected)]
            torch.testing.assert_close(*slopes)
        elif program is _added:
            assert got[0] == expected[0] and torch.equal(got[1], expected[1])
        else:
            assert got == expected
    assert stator.stats().graphs <= 3, stator.stats().recompile_log
