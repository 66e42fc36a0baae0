"""Hooks on gradients, and gradients asked for inside a compiled function."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import stator
from tests.pytorch.programs import agree


def leaf() -> Any:
    return torch.ones(3, requires_grad=True)


# -- hooks ------------------------------------------------------------------------------------------------------------


def scaling(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 10)
    return y.exp()


def seeing() -> Any:
    seen: list[float] = []

    def program(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: seen.append(float(g.sum())))
        return y.exp(), list(seen)

    return program


def kept(x: Any) -> Any:
    y = x * 2
    y.retain_grad()
    y.sum().backward()
    return y.grad


def removed(x: Any) -> Any:
    y = x * 2
    handle = y.register_hook(lambda g: g * 10)
    handle.remove()
    return y.exp()


def escaping(x: Any) -> Any:
    y = x * 2
    return y.exp(), [y.register_hook(lambda g: g * 10)].pop().id is None


def overwritten(x: Any) -> Any:
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.mul_(3)
    return y + 1


@pytest.mark.parametrize(("program", "breaks"), [(scaling, 0), (removed, 0), (escaping, 1), (overwritten, 0)])
def test_hooks_on_new_tensors(program: Any, breaks: int) -> None:
    agree(lambda: (program, (leaf(),)), grad=True, breaks=breaks)
    agree(lambda: (program, (leaf(),)), grad=True, breaks=None, backend="aot_eager")


def test_hooks_act_at_every_backward() -> None:
    agree(lambda: (seeing(), (leaf(),)), grad=True)


def test_a_gradient_is_retained() -> None:
    agree(lambda: (kept, (leaf(),)))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hooks_on_existing_tensors(backend: str) -> None:
    def program(x: Any, y: Any) -> Any:
        x.register_hook(lambda g: g + 1)
        y.register_hook(lambda g: g * 10)
        y.register_post_accumulate_grad_hook(lambda t: t.grad.mul_(2))
        return (x * y).sum()

    agree(lambda: (program, (leaf() * 2, leaf())), grad=True, calls=1, backend=backend)


def test_a_tensor_without_gradient_takes_no_hook() -> None:
    agree(lambda: (lambda x: x.register_hook(print), (torch.ones(3),)), breaks=None)


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
        self.seen: list[int] = []
        self.inner.register_full_backward_hook(lambda m, gi, go: self.seen.append(len(go)))

    def forward(self, x: Any) -> Any:
        return self.inner(x * 2) + 1


def test_a_module_with_backward_hooks_is_one_break() -> None:
    stats = agree(lambda: (Hooked(), (torch.ones(2, 3),)), grad=True, breaks=1)
    assert stats.graphs == 3  # before it, its `forward`, and after it


class Sensed(torch.autograd.Function):
    """Left to Python as a whole: what `forward` calls is part of it."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return doubled(x), doubled(x)

    @staticmethod
    def backward(ctx: Any, grad: Any, other: Any) -> Any:
        SEEN.append(len(grad))  # not traced: it acts on what is outside
        return doubled(grad)


SEEN: list[int] = []


def doubled(x: Any) -> Any:
    return x.sin() * 2


def test_a_function_that_is_left_to_python_is_left_as_a_whole() -> None:
    def program(x: Any) -> Any:
        return Sensed.apply(x + 1)[0] * 3

    stats = agree(lambda: (program, (torch.ones(3, requires_grad=True),)), grad=True, breaks=1)
    assert stats.graphs == 2  # before it and after it


def test_a_function_of_an_autograd_context_may_be_compiled() -> None:
    inner = stator.compile(lambda ctx, x: doubled(x) + 1, backend="eager")

    class Compiled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return inner(ctx, x)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    stator.reset()
    assert torch.equal(Compiled.apply(torch.ones(3)), doubled(torch.ones(3)) + 1)
    assert stator.stats().graphs == 1


# -- gradients --------------------------------------------------------------------------------------------------------


def net() -> Any:
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def inner_loop() -> Any:
    model, y = net(), torch.randint(0, 4, (5,))

    def program(x: Any) -> Any:
        params = dict(model.named_parameters())
        for _ in range(2):
            loss = F.cross_entropy(torch.func.functional_call(model, params, (x,)), y)
            grads = torch.autograd.grad(loss, tuple(params.values()), create_graph=True)
            params = {name: p - 0.1 * g for (name, p), g in zip(params.items(), grads, strict=True)}
        return F.cross_entropy(torch.func.functional_call(model, params, (x,)), y)

    return program, (torch.randn(5, 8),)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_gradients_in_the_graph(backend: str) -> None:
    agree(inner_loop, grad=True, graphs=1, backend=backend, rtol=1e-5)


def unused(x: Any) -> Any:
    z = torch.ones(2, requires_grad=True)
    return torch.autograd.grad((x * 2).sum(), [x, z], allow_unused=True)


def missing(x: Any) -> Any:
    return torch.autograd.grad((x * 2).sum(), torch.ones(2, requires_grad=True))


def twice(x: Any) -> Any:
    loss = (x * x).sum()
    return torch.autograd.grad(loss, x), torch.autograd.grad(loss, x)


def weighted(x: Any) -> Any:
    y = x.exp()
    (g,) = torch.autograd.grad(y, x, grad_outputs=torch.full_like(y, 2.0))
    return g.requires_grad, g


@pytest.mark.parametrize("program", [unused, missing, twice, weighted])
def test_gradients_as_the_engine_gives_them(program: Any) -> None:
    agree(lambda: (program, (leaf(),)), breaks=None)


def test_a_graph_from_before_is_left_to_the_engine() -> None:
    def program(x: Any, y: Any) -> Any:
        return torch.autograd.grad((y * y).sum(), x)

    def make() -> Any:
        x = leaf()
        return program, (x, x * 2)

    agree(make, breaks=1, calls=1)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_gradient_by_a_tensor_of_the_same_graph(backend: str) -> None:
    def program(x: Any) -> Any:
        y = x * 2
        loss = (y * y).sum()
        return torch.autograd.grad(loss, y)

    agree(lambda: (program, (leaf() * 3,)), breaks=0, backend=backend)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_hook_registered_on_a_parameter_between_two_calls(backend):
    def program(weight):
        return torch.autograd.grad((weight * 2).sum(), weight)[0]

    weight = torch.ones(2, requires_grad=True)
    traced = stator.compile(program, backend=backend)
    assert traced(weight).tolist() == program(weight).tolist() == [2.0, 2.0]
    weight.register_hook(lambda gradient: gradient * 10)
    assert traced(weight).tolist() == program(weight).tolist() == [20.0, 20.0]
    inner = torch.ones(2, requires_grad=True) * 3
    assert traced(inner).tolist() == program(inner).tolist()
