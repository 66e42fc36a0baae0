"""Hooks on the gradients of modules, and on nodes: traced where they only compute, and never lost."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.training import BACKENDS

backends = pytest.mark.parametrize("backend", BACKENDS)


def hooked(*hooks: Any, pre: Any = ()) -> nn.Sequential:
    """A network whose middle has hooks."""
    torch.manual_seed(3)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    for hook in pre:
        net[1].register_full_backward_pre_hook(hook)
    for hook in hooks:
        net[1].register_full_backward_hook(hook)
    return net


def first(hook: Any) -> nn.Linear:
    """A layer with a hook, whose argument is the program's."""
    torch.manual_seed(3)
    layer = nn.Linear(3, 2)
    layer.register_full_backward_pre_hook(hook)
    return layer


class Several(nn.Module):
    """More arguments than one, of which one is not used, and a result beside the tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(3, 3)

    def forward(self, x: Any, unused: Any, scale: float = 2.0) -> Any:
        return self.inner(x) * scale, scale


def several() -> nn.Module:
    torch.manual_seed(3)
    module = Several()
    module.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2 + go[0], gi[1] + 1))
    inner = nn.Linear(3, 3)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.module = inner, module

        def forward(self, x: Any) -> Any:
            x = self.inner(x)
            return self.module(x, x * 2)[0]

    return Outer()


def other() -> Any:
    weight = torch.full((), 3.0)
    return hooked(lambda m, gi, go: (gi[0] * weight,), pre=[lambda m, go: (go[0] * weight,)])


NETS = {
    "changes": lambda: hooked(lambda m, gi, go: (gi[0] * 2,)),
    "looks": lambda: hooked(lambda m, gi, go: None),
    "uses both": lambda: hooked(lambda m, gi, go: (gi[0] + go[0] * 2,)),
    "one after the other": lambda: hooked(lambda m, gi, go: (gi[0] * 2,), lambda m, gi, go: (gi[0] + 1,)),
    "before": lambda: hooked(pre=[lambda m, go: (go[0] * 2,), lambda m, go: None, lambda m, go: (go[0] + 1,)]),
    "before and behind": lambda: hooked(lambda m, gi, go: (gi[0] + go[0],), pre=[lambda m, go: (go[0] * 2,)]),
    "of its parameters": lambda: first(lambda m, go: (go[0] * m.weight.sum().detach(),)),
    "of other tensors": other,
    "several": several,
}


def seen(net: nn.Module, run: Any, sizes: Any = (3, 3, 5)) -> list[Any]:
    """All results and gradients; each gradient has come through two calls."""
    found = []
    for size in sizes:
        for leaf in net.parameters():
            leaf.grad = None
        for wanted in (True, False):
            x = torch.linspace(-1, 1, size * 3).reshape(size, 3).requires_grad_(wanted)
            out = run(x)
            (out.sin().sum() + run(x * 2).pow(2).sum()).backward()
            found.append((out.detach(), x.grad, [leaf.grad for leaf in net.parameters()]))
    return found


def same(make: Any, backend: Any, **options: Any) -> None:
    net, plain = make(), make()
    compiled = stator.compile(net, backend=backend, **options)
    torch.testing.assert_close(seen(net, compiled), seen(plain, plain))


@backends
@pytest.mark.parametrize("make", NETS.values(), ids=NETS)
def test_hooks_that_compute_are_part_of_the_graph(make: Any, backend: str) -> None:
    same(make, backend, fullgraph=True)


def test_hooks_with_inductor() -> None:
    net, plain = NETS["before and behind"](), NETS["before and behind"]()
    compiled = stator.compile(net, backend="inductor", fullgraph=True)
    torch.testing.assert_close(seen(net, compiled, [3]), seen(plain, plain, [3]), atol=1e-4, rtol=1e-4)


@backends
def test_a_backward_pass_inside_meets_the_hooks(backend: str) -> None:
    def make() -> Any:
        net = NETS["before and behind"]()

        def step(x: Any) -> Any:
            net(x).sin().sum().backward()
            return x * 1

        return net, step

    (net, step), (plain, plain_step) = make(), make()
    compiled = stator.compile(step, backend=backend, fullgraph=True)
    for size in (3, 3, 5):
        x = torch.linspace(-1, 1, size * 3).reshape(size, 3)
        compiled(x), plain_step(x)
        torch.testing.assert_close([p.grad for p in net.parameters()], [p.grad for p in plain.parameters()])


@backends
def test_second_derivatives_through_hooks(backend: str) -> None:
    def penalty(net: Any) -> Any:
        def run(x: Any) -> Any:
            (g,) = torch.autograd.grad(net(x).sin().sum(), x, create_graph=True)
            return g.pow(2).sum()

        return run

    found = []
    for wrap in (lambda f: f, lambda f: stator.compile(f, backend=backend, fullgraph=True)):
        net = hooked(lambda m, gi, go: (gi[0] * go[0],))
        run = wrap(penalty(net))
        for size in (3, 3, 5):
            x = torch.linspace(-1, 1, size * 3).reshape(size, 3).requires_grad_()
            if backend == "eager":
                run(x).backward()
            found.append((run(x).detach(), x.grad, [p.grad for p in net.parameters()]))
    half = len(found) // 2
    torch.testing.assert_close(found[half:], found[:half])


# -- left to Python ---------------------------------------------------------------------------------------------------


class Broken(nn.Module):
    def forward(self, x: Any) -> Any:
        x = x * 2
        stator.graph_break()
        return x.sin()


class Pair(nn.Module):
    def forward(self, x: Any) -> Any:
        return x.sin(), x.cos()


class Around(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.before, self.module = nn.Linear(3, 3), module

    def forward(self, x: Any) -> Any:
        out = self.module(self.before(x))
        return out[0] if isinstance(out, tuple) else out


def around(module: nn.Module, hook: Any, method: str = "register_full_backward_hook") -> Any:
    torch.manual_seed(3)
    getattr(module, method)(hook)
    return Around(module)


LEFT = {
    "the module breaks": lambda: around(Broken(), lambda m, gi, go: (gi[0] * 2,)),
    "it gives two tensors": lambda: around(Pair(), lambda m, gi, go: (gi[0] * 2,)),
    "the hook breaks": lambda: around(nn.Tanh(), lambda m, gi, go: (stator.graph_break(), (gi[0] * 2,))[1]),
    "the hook branches": lambda: around(nn.Tanh(), lambda m, gi, go: (gi[0] * (2 if gi[0].sum() > 0 else 3),)),
    "a hook of the old kind": lambda: around(nn.Tanh(), lambda m, gi, go: (gi[0] * 2,), "register_backward_hook"),
}


@backends
@pytest.mark.parametrize("make", LEFT.values(), ids=LEFT)
@pytest.mark.filterwarnings("ignore")
def test_other_hooks_run_as_python(make: Any, backend: str) -> None:
    same(make, backend)
    assert stator.stats().graph_breaks


@backends
def test_a_hook_that_notes_what_it_sees(backend: str) -> None:
    def run(wrap: Any) -> Any:
        noted: list[Any] = []
        net = around(nn.Tanh(), lambda m, gi, go: noted.append((gi[0].sum().item(), len(go))))
        found = seen(net, wrap(net))
        return found, noted

    torch.testing.assert_close(run(lambda net: stator.compile(net, backend=backend)), run(lambda net: net))


# -- hooks on nodes ---------------------------------------------------------------------------------------------------


def on_node(x: Any) -> Any:
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 3, *gi[1:]))
    return y.exp()


def before_node(x: Any) -> Any:
    y = x.sin() * 2
    node = y.grad_fn
    z = y.exp()
    node.register_prehook(lambda go: (go[0] * 3,))
    return z


@backends
@pytest.mark.parametrize("function", [on_node, before_node])
def test_hooks_on_nodes(function: Any, backend: str) -> None:
    compiled = stator.compile(function, backend=backend)
    for size in (3, 3, 5):
        gradients = []
        for run in (compiled, function):
            x = torch.arange(1.0, size + 1, requires_grad=True)
            run(x).sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients)
