"""TorchScript functions and modules as operations of a graph."""

import copy
import warnings
from typing import NamedTuple

import pytest
import torch
from torch import nn

import stator


def script(thing):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.script(thing)


def trace(thing, *args):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.jit.trace(thing, args)


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


def scaled(x, y: int = 2):
    return x * y + 1


def several(x, flag: bool):
    if flag:
        x = x.sin()
    return [x, x + 1], x.shape[0], (x.sum(), 2.5)


def in_place(x):
    x.add_(1)
    return x * 2


def pair(x):
    return Pair(x, x.cos())


def looking(x):
    if bool(x.sum() > 0):
        return x * 2
    return x - 1


def printing(x):
    print("printed")
    return x * 2


class Net(nn.Module):
    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(dropout), nn.BatchNorm1d(4))
        self.scale = 3

    def forward(self, x, bias: float = 0.5):
        return self.layers(x) * self.scale + bias


def outcome(function, module, size, calls=1):
    torch.manual_seed(size)
    x = torch.randn(size, 3, requires_grad=True)
    result = None
    for _ in range(calls):
        torch.manual_seed(1)
        result = function(x)
        result.sum().backward()
    members = [] if module is None else [*module.parameters()]
    buffers = [] if module is None else [b.clone() for b in module.buffers()]
    return result.detach(), x.grad, [m.grad for m in members], buffers


def check(make, backend="eager", tolerance=1e-6, **options):
    """`make` gives a function and a module with parameters, or None."""
    pairs = []
    for _ in range(2):
        torch.manual_seed(0)
        pairs.append(make())
    (function, module), (other, moved) = pairs
    compiled = stator.compile(function, backend=backend, fullgraph=True, **options)
    for size in (4, 4, 7, 5):
        got, expected = outcome(compiled, module, size), outcome(other, moved, size)
        torch.testing.assert_close(got, expected, rtol=tolerance, atol=tolerance)


BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager"])


@BACKENDS
@pytest.mark.parametrize("dynamic", [False, True])
def test_functions(backend, dynamic):
    g = script(scaled)
    check(lambda: (lambda x: g(x, 3).sin() + g(x) + g(x=x, y=4), None), backend, dynamic=dynamic)


@BACKENDS
def test_results_of_many_kinds(backend):
    g, h = script(several), script(pair)

    def f(x):
        (a, b), n, (s, number) = g(x, True)
        p = h(a)
        return a + b * n + s * number + p.first - p[1]

    check(lambda: (f, None), backend)


@BACKENDS
def test_writes_are_seen(backend):
    g = script(in_place)

    def f(x):
        y = x.clone()
        return g(y) + y

    check(lambda: (f, None), backend)
    x = torch.zeros(3)
    compiled = stator.compile(lambda x: g(x), backend=backend, fullgraph=True)
    for n in (1, 2):
        assert compiled(x).tolist() == [2.0 * n] * 3
        assert x.tolist() == [n] * 3


@BACKENDS
@pytest.mark.parametrize("mode", [True, False])
@pytest.mark.parametrize("make", [script, lambda net: trace(net, torch.randn(2, 3))])
def test_modules(make, mode, backend):
    check(lambda: 2 * (make(Net().train(mode)),), backend)


@BACKENDS
def test_modules_in_modules_and_arguments_by_name(backend):
    def outer():
        return 2 * (nn.Sequential(nn.Linear(3, 3), script(Net()), nn.Linear(4, 2)),)

    def called():
        inner = script(Net())
        return lambda x: inner(x, bias=2.0) + inner(x) + inner.forward(x, 1.5), inner

    check(outer, backend)
    check(called, backend)


def test_with_inductor():
    def make():
        g, module = script(scaled), script(Net().eval())
        return lambda x: g(module(x)), module

    check(make, "inductor", 1e-4)


def test_random_numbers_are_those_of_eager():
    check(lambda: 2 * (script(Net(dropout=0.5)),))


def test_what_a_module_holds_may_change():
    module = script(Net())
    compiled = stator.compile(module, backend="aot_eager")
    x = torch.randn(4, 3)

    def same():
        expected = copy.deepcopy(module)(x)
        torch.testing.assert_close(compiled(x), expected)

    same()
    module.eval()
    same()
    with torch.no_grad():
        module.layers[0].weight.mul_(2)
    same()
    for module.scale in (5, 7, 9, 3):
        same()
    module.layers[0].weight = nn.Parameter(torch.randn(4, 3))
    same()
    module.train()
    same()
    assert stator.stats().graph_breaks == 0


def test_a_first_call_while_tracing():
    compiled = stator.compile(script(Net().eval()), backend="eager", fullgraph=True)
    compiled(torch.randn(2, 3))
    assert stator.stats().graphs == 1


def listing(x):
    return x + torch.tensor([1.0, 2.0, 3.0])


def picking(x):
    """The script makes a tensor of the list."""
    if x.dim() > 0:
        return x[[2, 0, 1]]
    return x


@pytest.mark.parametrize("function", [looking, printing, listing, picking])
def test_what_is_left_to_python_is_one_break(function, capsys):
    g = script(function)
    compiled = stator.compile(lambda x: g(x + 1) * 2, backend="eager")
    for value in (1.0, 1.0, -3.0):
        x = torch.full((3,), value)
        torch.testing.assert_close(compiled(x), function(x + 1) * 2)
    assert stator.stats().graph_breaks == 1
    printed = capsys.readouterr().out.count("printed")
    assert printed == (6 if function is printing else 0)


def test_errors_are_those_of_the_script():
    g = script(scaled)
    compiled = stator.compile(lambda x, y: g(x, y), backend="eager")
    for args in ((torch.ones(2), "a"), (torch.ones(2), torch.ones(3))):
        with pytest.raises(RuntimeError) as expected:
            g(*args)
        with pytest.raises(RuntimeError) as got:
            compiled(*args)
        assert str(got.value) == str(expected.value)
