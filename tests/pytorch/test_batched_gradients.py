"""`torch.autograd.grad(…, is_grads_batched=True)`: gradients for several vectors at once."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.pytorch.gradients import BACKENDS, alike


def rows(n: int) -> tuple[torch.Tensor, ...]:
    return (torch.linspace(0.5, 1.5, n * 3).view(n, 3).requires_grad_(),)


def jacobian(x: Any) -> Any:
    y = x.sin() * x
    return torch.autograd.grad(y, x, torch.eye(y.numel()).view(-1, *y.shape), is_grads_batched=True)[0]


def of_second_order(x: Any) -> Any:
    y = (x.sin() * x).sum(0)
    return torch.autograd.grad([y], [x], [torch.eye(3)], is_grads_batched=True, create_graph=True)


def with_nothing(x: Any) -> Any:
    y, other = x.exp(), torch.ones(2, requires_grad=True)
    vectors = y.detach().expand(3, *y.shape)
    found = torch.autograd.grad(y, (other, x), vectors, is_grads_batched=True, allow_unused=True)
    return found[0] is None, found[1]


def of_several(x: Any) -> Any:
    w = x * 2
    y, z = (w @ w.T).tanh(), x.cos().sum()
    vectors = [torch.ones(2, x.shape[0], x.shape[0]), torch.ones(2)]
    return torch.autograd.grad([y, z], [w, x], vectors, is_grads_batched=True, create_graph=True)


def of_wrong_size(x: Any) -> Any:
    return torch.autograd.grad(x.exp(), x, torch.ones(2, 2), is_grads_batched=True)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", [jacobian, of_second_order, with_nothing, of_several])
def test_no_break_at_sizes_that_vary(program: Any, backend: str) -> None:
    alike(lambda: (program, []), rows, backend=backend, breaks=0, calls=1, tolerance=1e-5)


@pytest.mark.parametrize("backend", BACKENDS)
def test_errors_are_eagers(backend: str) -> None:
    alike(lambda: (of_wrong_size, []), rows, backend=backend, calls=1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_of_gradients_that_break(backend: str) -> None:
    """A graph of the backend's would lose them without an error."""

    def program(x: Any) -> Any:
        w = x * 2
        found = torch.autograd.grad((w @ w.T).tanh(), {"w": w, "x": x}, torch.ones(2, 3, 3), **options)
        return list(found.values()) if isinstance(found, dict) else found

    options: Any = {"is_grads_batched": True, "create_graph": True}
    alike(lambda: (program, []), rows, backend=backend, sizes=(3,), calls=2, tolerance=1e-5)
