"""`backward()` in a traced function: the gradients of leaves are what the engine would give them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tests.pytorch.training import BACKENDS, trains_alike

backends = pytest.mark.parametrize("backend", BACKENDS)


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(shape, requires_grad=True)


def with_leaves(program: Any, *shapes: tuple[int, ...]) -> Any:
    """Builds a program whose first arguments are new leaves of these shapes, the same in each call."""

    def make() -> Any:
        leaves = [leaf(*shape) for shape in shapes]
        return lambda x: program(*leaves, x), leaves

    return make


# -- what is accumulated ----------------------------------------------------------------------------------------------


def simple(w: Any, x: Any) -> Any:
    loss = (x @ w).sin().sum()
    loss.backward()
    return loss.detach()


def some_unused(w: Any, v: Any, x: Any) -> Any:
    (x @ w).exp().mean().backward()
    return v.grad is None, w.grad is None


def read_back(w: Any, x: Any) -> Any:
    (x @ w).sin().sum().backward()
    first = w.grad
    (x @ w).cos().sum().backward()
    return w.grad is first, w.grad * 2, first


def emptied(w: Any, x: Any) -> Any:
    (x @ w).sin().sum().backward()
    old = w.grad
    w.grad = None
    (x @ w).cos().sum().backward()
    return old, w.grad, old is w.grad


def emptied_first(w: Any, x: Any) -> Any:
    w.grad = None
    (x @ w).sin().sum().backward()
    return w.grad.norm()


def zeroed(w: Any, x: Any) -> Any:
    if w.grad is not None:
        w.grad.zero_()
    (x @ w).sin().sum().backward()
    return w.grad


def assigned(w: Any, x: Any) -> Any:
    w.grad = torch.ones_like(w)
    (x @ w).sin().sum().backward()
    return w.grad


def expanded(w: Any, x: Any) -> Any:
    w.sum().backward()
    return x + 1


def one_for_two(w: Any, v: Any, x: Any) -> Any:
    (w + v).sum().backward()
    w.grad = w.grad * 1 if w.grad is None else w.grad
    w.grad.mul_(3)
    return v.grad, x


def same_for_two(w: Any, v: Any, x: Any) -> Any:
    seed = torch.full((3, 2), 2.0)
    (w + v).backward(seed)
    seed.mul_(5)
    w.grad.add_(1)
    return seed, v.grad


def seed_itself(w: Any, x: Any) -> Any:
    w.backward(x.new_ones(3, 2))
    return w.grad


def loss_is_a_leaf(w: Any, x: Any) -> Any:
    w.backward()
    return w.grad


def joined(w: Any, v: Any, x: Any) -> Any:
    both = torch.cat([w, v])
    (x @ both.view(3, -1)).sum().backward()
    w.grad.mul_(2)
    return v.grad


def several(w: Any, v: Any, x: Any) -> Any:
    torch.autograd.backward([(x @ w).sum(), (x @ v).sin()], [None, torch.ones(len(x), 2)])
    return w.grad, v.grad


def only_some(w: Any, v: Any, x: Any) -> Any:
    ((x @ w) * (x @ v)).sum().backward(inputs=[w])
    return v.grad is None


def only_one(w: Any, v: Any, x: Any) -> Any:
    torch.autograd.backward(((x @ w) * (x @ v)).sum(), inputs=w)
    return v.grad is None


def frozen(w: Any, x: Any) -> Any:
    with torch.no_grad():
        y = x @ w
    (y * w.sum()).sum().backward()
    return y


def without_gradients(w: Any, x: Any) -> Any:
    loss = (x @ w).sin().sum()
    with torch.no_grad():
        loss.backward()
    return loss.detach()


def in_a_loop(w: Any, x: Any) -> Any:
    w.grad = None
    for row in x.chunk(3):
        ((row @ w).pow(2).mean() / 3).backward()
    return w.grad


def sub_graphs(w: Any, x: Any) -> Any:
    h = (x @ w).tanh()
    h.sum().backward(retain_graph=True)
    (h * h).sum().backward()
    return h.detach()


def stepped(w: Any, x: Any) -> Any:
    loss = (x @ w).sin().sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad = None
    return loss


def detached(w: Any, v: Any, x: Any) -> Any:
    h = (x @ w).sigmoid()
    (h.detach() @ v.view(2, 3)).sum().backward()
    h.sum().backward()
    return h.detach()


def twice_differentiated(w: Any, x: Any) -> Any:
    loss = (x @ w).sin().sum()
    (g,) = torch.autograd.grad(loss, w, create_graph=True)
    (loss + g.pow(2).sum()).backward()
    return g.detach()


accumulated: list[tuple[Any, ...]] = [
    (simple, (3, 2)),
    (some_unused, (3, 2), (3, 2)),
    (read_back, (3, 2)),
    (emptied, (3, 2)),
    (emptied_first, (3, 2)),
    (zeroed, (3, 2)),
    (assigned, (3, 2)),
    (expanded, (3, 2)),
    (one_for_two, (3, 2), (3, 2)),
    (same_for_two, (3, 2), (3, 2)),
    (seed_itself, (3, 2)),
    (loss_is_a_leaf, ()),
    (joined, (3, 2), (3, 2)),
    (several, (3, 2), (3, 2)),
    (only_some, (3, 2), (3, 2)),
    (only_one, (3, 2), (3, 2)),
    (frozen, (3, 2)),
    (without_gradients, (3, 2)),
    (in_a_loop, (3, 2)),
    (sub_graphs, (3, 2)),
    (stepped, (3, 2)),
    (detached, (3, 2), (3, 2)),
    (twice_differentiated, (3, 2)),
]


@backends
@pytest.mark.parametrize("case", accumulated, ids=lambda case: case[0].__name__)
def test_gradients_are_accumulated_in_leaves(case: Any, backend: str) -> None:
    trains_alike(with_leaves(*case), backend=backend)
