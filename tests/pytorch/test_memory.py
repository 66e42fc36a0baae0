"""Inputs that lie upon each other: results, and all of the memory beneath them, are as in eager execution."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import stator
from stator import _core

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def strict():
    """The core's verdicts are compared with Python's."""
    before = _core.set_strict(True)
    yield
    _core.set_strict(before)


def numbers(count=16):
    return torch.arange(float(count))


def pair(*views):
    """What makes two views of one base."""

    def make():
        base = numbers()
        return base, [view(base) for view in views]

    return make


def at(begin, end):
    return lambda base: base[begin:end]


def every_other(base):
    return base[:8:2]


def odd_ones(base):
    return base[1:9:2]


def column(index):
    return lambda base: base.view(4, 4)[:, index]


def transposed(base):
    return base.view(4, 4).t()[0]


def two():
    base, other = numbers(), numbers()
    return torch.stack([base, other]), [base[:4], other[:4]]


def twice():
    x = numbers(4)
    return x, [x, x]


def aliased(make):
    def both():
        x = numbers(4)
        return x, [x, make(x)]

    return both


def of_numpy():
    array = np.arange(8, dtype=np.float32)
    return torch.from_numpy(array), [torch.from_numpy(array[:4]), torch.from_numpy(array[1:5])]


PAIRS = {
    "apart": pair(at(0, 4), at(4, 8)),
    "one further": pair(at(0, 4), at(1, 5)),
    "two further": pair(at(0, 4), at(2, 6)),
    "before": pair(at(4, 8), at(2, 6)),
    "the same": pair(at(4, 8), at(4, 8)),
    "two storages": two,
    "one object": twice,
    "detached": aliased(torch.Tensor.detach),
    "viewed": aliased(lambda x: x.view(2, 2).view(-1)),
    "data": aliased(lambda x: x.data),
    "woven": pair(every_other, odd_ones),
    "columns": pair(column(1), column(2)),
    "row and column": pair(at(4, 8), column(1)),
    "transposed": pair(column(0), transposed),
    "arrays": of_numpy,
}


def add_and_read(x, y):
    x.add_(1)
    return y * 2


def read_and_write(x, y):
    z = y * 2
    x.mul_(z.sum())
    y[0] = 7
    return x + z


def write_both(x, y):
    x.add_(1)
    y.mul_(3)
    x.sub_(2)
    return x.sum()


def write_a_part(x, y):
    x[1:3].copy_(y[:2] + 1)
    return y[1:]


PROGRAMS = [add_and_read, read_and_write, write_both, write_a_part]


def outcome(function, make):
    base, args = make()
    try:
        result = function(*args)
        shown = result.tolist(), result.shape, result.stride()
    except RuntimeError as error:
        shown = str(error)
    return shown, base.tolist(), [arg.tolist() for arg in args]


def check(program, makes, backend, **options):
    compiled = stator.compile(program, backend=backend, **options)
    for make in makes:
        assert outcome(compiled, make) == outcome(program, make)
    stator.reset()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_each_after_each(program, backend):
    makes = list(PAIRS.values())
    check(program, makes, backend)
    check(program, makes[::-1], backend)
    for make in makes:
        check(program, [make, PAIRS["apart"], make], backend)


@pytest.mark.parametrize("dynamic", [None, True])
def test_sizes_that_vary(dynamic):
    sizes = [(0, 4, 4, 8), (0, 5, 5, 10), (0, 6, 5, 11), (0, 3, 2, 5), (4, 8, 2, 6), (0, 7, 7, 14), (0, 8, 7, 15)]
    makes = [pair(at(a, b), at(c, d)) for a, b, c, d in sizes]
    for program in PROGRAMS:
        check(program, makes, "aot_eager", dynamic=dynamic)
        check(program, makes[::-1], "aot_eager", dynamic=dynamic)


def test_compiled_once_apart_and_once_not():
    made = []

    def backend(gm, examples):
        made.append(gm)
        return gm.forward

    compiled = stator.compile(add_and_read, backend=backend)
    for name in ("apart", "one further", "two storages", "two further", "before", "detached", "apart"):
        assert outcome(compiled, PAIRS[name]) == outcome(add_and_read, PAIRS[name])
    assert len(made) == 1
    assert stator.stats().frames == 2


def test_what_is_not_written_may_lie_as_it_likes():
    compiled = stator.compile(lambda x, y: x * y, backend="aot_eager")
    for name in ("apart", "one further", "before", "one object", "detached", "two storages", "arrays"):
        compiled(*PAIRS[name]()[1])
    assert stator.stats().frames == 1


class Holder:
    held = None


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(numbers(4))
        self.register_buffer("buf", numbers(4))
        self.plain = numbers(4)

    def forward(self, x, name):
        x.add_(1)
        return getattr(self, name) * 2 + self.weight


class Overriding(torch.Tensor):
    pass


def of_a_class(x):
    x.add_(1)
    return Holder.held * 2


def of_an_argument(holder, x):
    x.add_(1)
    return holder.held * 2


def of_a_list(x, others):
    x.add_(1)
    return others[0] * 2 + others[1]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("places", [((8, 12), (0, 4), (2, 6), (1, 5)), ((0, 4), (2, 6), (8, 12))])
def test_wherever_the_other_is_found(places, backend):
    def calls(compile):
        functions = [compile(of_a_class), compile(of_an_argument), compile(of_a_list)]
        for begin, end in places:
            for function in functions:
                base = numbers()
                holder = Holder()
                holder.held = Holder.held = base[begin:end]
                args = {0: (base[:4],), 1: (holder, base[:4]), 2: (base[:4], [base[begin:end], base[12:]])}
                yield function(*args[functions.index(function)]).tolist(), base.tolist()

    expected = list(calls(lambda f: f))
    assert list(calls(lambda f: stator.compile(f, backend=backend))) == expected


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("member", ["buf", "plain", "weight"])
def test_members_of_modules(member, backend):
    def calls(compile):
        net = Net()
        function = compile(net)
        with torch.no_grad():
            yield function(numbers(4), member).tolist()
            for begin in (0, 1, 2):
                base = numbers()
                if member == "weight":
                    net.weight.data = base[begin : begin + 4]
                else:
                    setattr(net, member, base[begin : begin + 4])
                yield function(base[:4], member).tolist()
                yield base.tolist()

    expected = list(calls(lambda f: f))
    assert list(calls(lambda f: stator.compile(f, backend=backend))) == expected


def test_buffers_that_are_written():
    class Counting(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(4)

        def forward(self, x):
            return self.norm(x)

    def calls(compile):
        torch.manual_seed(0)
        net = Counting()
        function = compile(net)
        for begin in (8, 0, 1, 8):
            base = numbers(64)
            if begin < 8:
                net.norm.running_mean = base[begin : begin + 4]
            yield function(base[:32].view(8, 4)).tolist()
            yield base.tolist(), net.norm.running_mean.tolist(), net.norm.running_var.tolist()

    expected = list(calls(lambda f: f))
    got = list(calls(lambda f: stator.compile(f, backend="aot_eager")))
    for want, have in zip(expected, got, strict=True):
        torch.testing.assert_close(torch.tensor(sum(map(flat, have), [])), torch.tensor(sum(map(flat, want), [])))


def flat(nested):
    return sum(map(flat, nested), []) if isinstance(nested, (list, tuple)) else [nested]


def test_subclasses_and_parameters():
    def sub(base):
        return base[2:6].as_subclass(Overriding)

    def parameter(base):
        return torch.nn.Parameter(base[3:7], requires_grad=False)

    for view in (sub, parameter):
        for program in (add_and_read, lambda x, y: add_and_read(y, x)):
            check(program, [two, pair(at(0, 4), view), pair(at(1, 5), view), pair(at(8, 12), view)], "aot_eager")


def test_complex_and_real():
    def make():
        base = torch.view_as_complex(numbers(16).view(8, 2))
        return torch.view_as_real(base), [torch.view_as_real(base)[1:5], torch.view_as_real(base[2:6])]

    def parts():
        base = torch.view_as_complex(numbers(16).view(8, 2))
        return torch.view_as_real(base), [base.real[:4], base.imag[:4]]

    def write_complex(x, y):
        torch.view_as_complex(x).mul_(1j)
        return y * 2

    check(write_complex, [make, lambda: (numbers(), [numbers().view(8, 2)[:4], numbers().view(8, 2)[4:]])], "aot_eager")
    check(add_and_read, [two, parts], "aot_eager")


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients(backend):
    def program(x, y, weight):
        with torch.no_grad():
            x.add_(1)
        return (y * weight).sum()

    def calls(compile):
        function = compile(program)
        for begin in (8, 0, 1, 2):
            leaf = numbers().requires_grad_()
            weight = torch.ones(4, requires_grad=True)
            with torch.no_grad():
                x = leaf[:4]
            y = leaf[begin : begin + 4]
            function(x, y, weight).backward()
            yield leaf.tolist(), leaf.grad.tolist(), weight.grad.tolist()

    def gained(x, y, weight):
        x.add_(weight)
        return y * 2

    def gains(compile):
        function = compile(gained)
        for begin in (8, 0, 1, 2):
            base = numbers()
            weight = torch.ones(4, requires_grad=True)
            result = function(base[:4], base[begin : begin + 4], weight)
            yield result.tolist(), result.requires_grad, base.tolist()
            if result.requires_grad:
                result.sum().backward()
                yield weight.grad.tolist()

    for runs in (calls, gains):
        expected = list(runs(lambda f: f))
        assert list(runs(lambda f: stator.compile(f, backend=backend))) == expected
        stator.reset()


def test_inductor():
    makes = [PAIRS[name] for name in ("one further", "two further", "apart", "detached", "before")]
    check(add_and_read, makes, "inductor")
    check(add_and_read, makes[::-1], "inductor")


VIEWS = st.one_of(
    st.tuples(st.just("slice"), st.integers(0, 12), st.just(1)),
    st.tuples(st.just("strided"), st.integers(0, 6), st.integers(1, 3)),
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["add_", "mul_", "copy_", "part", "read"]), st.integers(0, 2), st.integers(0, 2)),
    min_size=1,
    max_size=4,
)


def view_of(base, kind, begin, step):
    return base[begin : begin + 4] if kind == "slice" else base.as_strided((4,), (step,), begin)


def random_program(steps):
    def program(*tensors):
        results = []
        for name, target, other in steps:
            if name == "read":
                results.append(tensors[target] * 2 + tensors[other])
            elif name == "part":
                tensors[target][1:3].add_(tensors[other].sum())
            elif name == "copy_":
                tensors[target].copy_(tensors[other].clone())
            else:
                getattr(tensors[target], name)(tensors[other].clone())
        return tuple(results)

    return program


@settings(max_examples=25, deadline=None, derandomize=True)
@given(STEPS, st.lists(st.tuples(VIEWS, VIEWS, VIEWS), min_size=2, max_size=4))
def test_random_views_and_writes(steps, calls):
    program = random_program(steps)
    compiled = stator.compile(program, backend="aot_eager")
    for views in calls:
        outcomes = []
        for function in (program, compiled):
            base = numbers()
            results = function(*[view_of(base, *view) for view in views])
            outcomes.append(([result.tolist() for result in results], base.tolist()))
        assert outcomes[0] == outcomes[1]
    stator.reset()


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("leave", ["set_", "data"])
def test_a_view_that_has_left_its_base_has_memory_of_its_own(leave, backend):
    """torch takes such a view for its base's memory: a backend would see `y` change with `x`."""

    def write(x, y):
        x.add_(-1.0)
        return y.sum(), x + y

    def leave_and_write(x, y):
        y.set_(x.clone())
        x.add_(-1.0)
        return y.sum(), x + y

    def run(function, function_that_leaves):
        x = torch.tensor([4.0, 0.0, 0.0, 0.0])
        y, z = x.view(4), x.view(4)
        if leave == "set_":
            y.set_(x.clone())
        else:
            y.data = x.clone()
        first = [result.tolist() for result in function(x, y)]
        return first, [result.tolist() for result in function_that_leaves(x, z)], x.tolist(), y.tolist(), z.tolist()

    stator.reset()
    compiled = [stator.compile(function, backend=backend) for function in (write, leave_and_write)]
    assert run(*compiled) == run(write, leave_and_write)
