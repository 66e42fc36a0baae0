"""Hooks that are traced: on what a graph makes, and on leaves whose gradients it computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.gradients import alike
from tests.pytorch.training import BACKENDS, trains_alike

backends = pytest.mark.parametrize("backend", BACKENDS)


# -- on what the graph makes ------------------------------------------------------------------------------------------


def scaled(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return y.exp()


def after_use(x: Any) -> Any:
    y = x * 2
    z = y.sin()
    y.register_hook(lambda g: g * 10 + 1)
    return z + y


def twice(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    return y.sin()


def capturing(x: Any) -> Any:
    w = x.detach().exp()
    y = x * 2
    y.register_hook(lambda g: g * w)
    return y.sin()


def only_looking(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: None)
    return y.sin()


def on_a_view(x: Any) -> Any:
    y = (x * 2).view(-1, 1)
    y.register_hook(lambda g: g * 10)
    return y.sin(), y


def written_later(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.mul_(3)
    return y + 1


def returned(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g + 1)
    return y, y.sin()


def with_backward(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.sin().sum().backward()
    return x.grad * 1


def with_grad(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g.clamp(max=0.5))
    return torch.autograd.grad(y.sin().sum(), x)[0]


def removed(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 10).remove()
    return y.exp()


def removed_at_the_end(x: Any) -> Any:
    y = x * 2
    with y.register_hook(lambda g: g * 10):
        return y.exp()


def one_removed(x: Any) -> Any:
    y = x * 2
    handles = [y.register_hook(hook) for hook in (lambda g: g * 10, lambda g: g + 1, lambda g: None)]
    handles[0].remove()
    handles[0].remove()
    return y.exp()


def removed_from_an_argument(x: Any) -> Any:
    handle = x.register_hook(lambda g: g * 10)
    y = x.exp()
    handle.remove()
    return y


whole = [
    scaled,
    after_use,
    twice,
    capturing,
    only_looking,
    on_a_view,
    written_later,
    returned,
    with_backward,
    with_grad,
    removed,
    removed_at_the_end,
    removed_from_an_argument,
    one_removed,
]


@backends
@pytest.mark.parametrize("program", whole)
def test_a_hook_that_computes_is_part_of_the_graph(program: Any, backend: str) -> None:
    alike(lambda: (program, []), backend=backend, breaks=0, tolerance=1e-5)


def test_a_hook_under_inductor() -> None:
    alike(lambda: (scaled, []), backend="inductor", sizes=(3, 5), breaks=0, tolerance=1e-5)


def beside_another(x: Any) -> Any:
    y, z = x * 2, x * 3
    y.register_hook(lambda g: g + 1)
    return y.sin(), z.cos()


def on_a_view_of_an_input(x: Any) -> Any:
    y = x.view(-1, 1)
    y.register_hook(lambda g: g * 10)
    return y


def removed_after_use(x: Any) -> Any:
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    y.exp().sum().backward()
    handle.remove()
    return x.grad * 1


def handle_kept(x: Any) -> Any:
    y = x * 2
    handles = [y.register_hook(lambda g: g * 10)]
    return y.exp(), handles[0].id is None


def raising(x: Any) -> Any:
    y = x * 2

    def hook(g: Any) -> Any:
        raise ValueError("no")

    y.register_hook(hook)
    return y.exp().detach()


def of_another_shape(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g.sum())
    return y.exp().detach()


@backends
@pytest.mark.parametrize(
    "program", [beside_another, on_a_view_of_an_input, removed_after_use, handle_kept, raising, of_another_shape]
)
def test_other_hooks_are_registered_by_python(program: Any, backend: str) -> None:
    alike(lambda: (program, []), backend=backend, tolerance=1e-5)


@backends
def test_a_hook_that_acts_acts_at_every_backward(backend: str) -> None:
    def make() -> Any:
        seen: list[int] = []

        def program(x: Any) -> Any:
            y = x * 2
            y.register_hook(lambda g: seen.append(len(g)))
            return y.exp(), list(seen)

        return program, []

    alike(make, backend=backend, tolerance=1e-5)


@backends
@pytest.mark.parametrize("chosen", [0, 1])
def test_a_hook_is_not_called_for_other_results(chosen: int, backend: str) -> None:
    def program(x: Any) -> Any:
        y, z = x * 2, x * 3
        y.register_hook(lambda g: g * 10)
        return y.sin(), z.cos()

    compiled = stator.compile(program, backend=backend)
    found = []
    for function in (program, compiled, compiled):
        x = torch.linspace(0, 1, 3, requires_grad=True)
        function(x)[chosen].sum().backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1:], [found[0]] * 2)


@backends
@pytest.mark.parametrize("chosen", [0, 1])
def test_a_hook_that_acts_is_not_called_for_other_results(chosen: int, backend: str) -> None:
    def count(wrap: Any) -> int:
        seen = []

        def program(x: Any) -> Any:
            y, z = x * 2, x * 3
            y.register_hook(lambda g: seen.append(g))
            return y.sin(), z.cos()

        wrap(program)(torch.linspace(0, 1, 3, requires_grad=True))[chosen].sum().backward()
        return len(seen)

    assert count(lambda program: stator.compile(program, backend=backend)) == count(lambda program: program)


NORMS: list[tuple[str, float]] = []


@stator.leaf_function
def note(name: str, gradient: Any) -> None:
    NORMS.append((name, gradient.norm().item()))


note.register_fake(lambda name, gradient: None)


def noting(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: note("y", g))
    return y.exp()


def noting_and_scaling(x: Any) -> Any:
    y = x * 2

    def hook(g: Any) -> Any:
        note("before", g)
        g = g * x.detach()
        note("after", g)
        return g

    y.register_hook(hook)
    return y


def noting_inside(x: Any) -> Any:
    y = x.detach().clone().requires_grad_()
    z = y * 2
    z.register_hook(lambda g: note("z", g))
    z.exp().sum().backward()
    return x * y.grad


@backends
@pytest.mark.parametrize("program", [noting, noting_and_scaling, noting_inside])
def test_a_hook_may_call_leaf_functions(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for size in (2, 2, 3, 4):
        found = []
        for function in (program, compiled):
            NORMS.clear()
            x = torch.linspace(0, 1, size, requires_grad=True)
            function(x).sum().backward()
            found.append((x.grad, [*NORMS]))
        assert str(found[1]) == str(found[0]) and NORMS


# -- retained gradients -----------------------------------------------------------------------------------------------


def retained(x: Any) -> Any:
    y = x * 2
    y.retain_grad()
    y.sin().sum().backward()
    return y.grad, y.retains_grad


def retained_twice(x: Any) -> Any:
    y = x * 2
    y.retain_grad()
    y.sin().sum().backward(retain_graph=True)
    first = y.grad
    y.cos().sum().backward()
    return y.grad, first, y.grad is first


def retained_and_returned(x: Any) -> Any:
    y = (x * 2).exp()
    y.retain_grad()
    y.sin().sum().backward()
    return y.detach(), y.grad, y


def retained_for_the_caller(x: Any) -> Any:
    y = x * 2
    y.retain_grad()
    return y, y.sin(), y.grad


def hooked_and_retained(x: Any) -> Any:
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.sin().sum().backward()
    return y.grad


def on_a_leaf(x: Any) -> Any:
    x.retain_grad()
    (x * 2).sin().sum().backward()
    return x.grad * 1


@backends
@pytest.mark.parametrize(
    ("program", "breaks"),
    [
        *((retained, 0), (retained_twice, 0), (retained_and_returned, 0), (on_a_leaf, 0)),
        *((retained_for_the_caller, None), (hooked_and_retained, None)),
    ],
)
def test_gradients_that_are_retained(program: Any, breaks: Any, backend: str) -> None:
    alike(lambda: (program, []), backend=backend, breaks=breaks, tolerance=1e-5)


# -- on leaves --------------------------------------------------------------------------------------------------------


def small() -> Any:
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def clipping() -> Any:
    net = small()
    for p in net.parameters():
        p.register_hook(lambda g: g.clamp(-0.1, 0.1))
    return lambda x: net(x).sin().sum().backward(), list(net.parameters())


def stepping() -> Any:
    net = small()
    optimizers = {p: torch.optim.SGD([p], 0.1) for p in net.parameters()}

    def step(p: Any) -> None:
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in net.parameters():
        p.register_post_accumulate_grad_hook(step)
    return lambda x: net(x).sin().sum().backward(), list(net.parameters())


def logging() -> Any:
    net, seen = small(), []
    for name, p in net.named_parameters():
        p.register_hook(lambda g, name=name: seen.append(name) or g * 2)
        p.register_post_accumulate_grad_hook(lambda p, name=name: seen.append((name, p.grad.shape)))

    def program(x: Any) -> Any:
        net(x).sin().sum().backward()
        found = list(seen)
        seen.clear()
        return found

    return program, list(net.parameters())


@backends
@pytest.mark.parametrize("make", [clipping, stepping, logging])
def test_hooks_of_leaves_are_called_with_the_gradients(make: Any, backend: str) -> None:
    trains_alike(make, backend=backend, tolerance=1e-5)


@backends
def test_what_the_hook_gives_that_the_engine_refuses(backend: str) -> None:
    def make() -> Any:
        w = torch.randn(3, 2, requires_grad=True)
        w.register_hook(lambda g: g.sum())
        return lambda x: (x @ w).sin().sum().backward(), [w]

    stats = trains_alike(make, backend=backend, breaks=None)
    assert stats.breaks


@backends
def test_a_hook_that_holds_the_gradient(backend: str) -> None:
    def make() -> Any:
        w, held = torch.randn(3, 2, requires_grad=True), []
        w.register_hook(lambda g: held.append(g * 2) or held[-1])

        def program(x: Any) -> Any:
            w.grad = None
            (x @ w).sin().sum().backward()
            w.grad.mul_(3)
            return held.pop()

        return program, [w]

    trains_alike(make, backend=backend)


def test_hooks_are_guarded() -> None:
    w = torch.ones(2, requires_grad=True)
    compiled = stator.compile(lambda w: (w * 3).sum().backward(), backend="eager", fullgraph=True)
    expected = torch.zeros(2)
    for factor in (None, 10, 20, None):
        handle = None if factor is None else w.register_hook(lambda g, factor=factor: g * factor)
        compiled(w)
        expected += 3 * (factor or 1)
        assert w.grad is not None and torch.equal(w.grad, expected)
        if handle is not None:
            handle.remove()
