"""What code that the engine calls back does to what the traced function has made: when it is called, not before."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import stator
from tests.pytorch.training import BACKENDS


class Box:
    def __init__(self) -> None:
        self.n = 0
        self.inner: Any = None


def in_list(x: Any) -> Any:
    seen = [0]
    y = x * 2

    def hook(g: Any) -> None:
        seen[0] += 1

    y.register_hook(hook)
    return y.sin(), seen[0], seen


def in_attribute(x: Any) -> Any:
    box = Box()
    box.inner = Box()
    y = x * 2

    def hook(g: Any) -> Any:
        box.inner.n += 1
        return g * 2

    y.register_hook(hook)
    return y.sin(), box.inner.n


def in_cell(x: Any) -> Any:
    count = 0
    y = x * 2

    def hook(g: Any) -> None:
        nonlocal count
        count += 1

    y.register_hook(hook)
    return y.sin(), count


def in_tensor(x: Any) -> Any:
    total = torch.zeros(1)
    y = x * 2

    def hook(g: Any) -> None:
        total.add_(g.sum())

    y.register_hook(hook)
    return y.sin(), total.clone(), total


def in_gradient(x: Any) -> Any:
    y = x * 2

    def hook(g: Any) -> None:
        g.mul_(5)

    y.register_hook(hook)
    return y.sin(), 0


def only_inside(x: Any) -> Any:
    y = x * 2

    def hook(g: Any) -> Any:
        parts = []
        parts.append(g)
        return {"a": parts}["a"][0] * 3

    y.register_hook(hook)
    return y.sin(), 0


def of_module(x: Any) -> Any:
    seen = [0]

    def hook(module: Any, gi: Any, go: Any) -> Any:
        seen[0] += 1
        return (gi[0] * 2,)

    tanh = nn.Tanh()
    tanh.register_full_backward_hook(hook)
    return tanh(x * 2), seen[0]


class Counts(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, seen: Any) -> Any:
        ctx.seen = seen
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        ctx.seen[0] += 1
        return grad * 2, None


def of_function(x: Any) -> Any:
    seen = [0]
    return Counts.apply(x, seen).sin(), seen[0], seen


def of_checkpoint(x: Any) -> Any:
    seen = [0]

    def body(a: Any) -> Any:
        seen[0] += 1
        return a.sin() * 2

    return checkpoint(body, x, use_reentrant=False), seen[0], seen


PROGRAMS = [
    *(in_list, in_attribute, in_cell, in_tensor, in_gradient, only_inside),
    *(of_module, of_function, of_checkpoint),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_done_when_the_code_is_called(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for size in (2, 2, 4):
        outcomes = []
        for run in (program, compiled):
            x = torch.linspace(-1, 1, size).requires_grad_()
            out, *seen = run(x)
            out.sum().backward()
            outcomes.append((out.detach(), x.grad, *seen))
        torch.testing.assert_close(outcomes[1], outcomes[0])


def test_hooks_that_keep_to_themselves_are_traced() -> None:
    x = torch.ones(3, requires_grad=True)
    stator.compile(only_inside, backend="aot_eager", fullgraph=True)(x)[0].sum().backward()
    torch.testing.assert_close(x.grad, 6 * torch.full((3,), 2.0).cos())


def test_a_branch_changes_nothing_that_the_program_has_made() -> None:
    def program(x: Any) -> Any:
        box = Box()

        def yes(a: Any) -> Any:
            box.n += 1
            return a.sin()

        out = torch.cond(x.sum() > 0, yes, lambda a: a.cos(), (x,))
        return out, box.n

    with pytest.raises(stator.errors.GraphBreakError, match=r"changes\s+objects"):
        stator.compile(program, backend="eager", fullgraph=True)(torch.ones(2))


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_mode_that_a_size_decides_on(backend: str) -> None:
    def program(x: Any) -> Any:
        with torch.set_grad_enabled(x.shape[0] > 3):
            return x * 2

    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for size in (2, 3, 4, 5):
        assert compiled(torch.ones(size, requires_grad=True)).requires_grad is (size > 3)
