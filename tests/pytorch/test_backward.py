"""`backward()` in a traced function: the gradients of leaves are what the engine would give them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stator
from tests.pytorch.old_torch import fails_on_old_torch
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


def handed_in_by_iterators(w: Any, v: Any, x: Any) -> Any:
    losses = [(x @ w).sin().sum(), (x @ v.view(2, 3).t()).sum()]
    found = torch.autograd.grad(outputs=(h for h in losses), inputs=iter([w, v]), retain_graph=True)
    torch.autograd.backward(map(torch.sin, losses), inputs=(leaf for leaf in (w, v)))
    return [g.detach() for g in found]


def twice_differentiated(w: Any, x: Any) -> Any:
    loss = (x @ w).sin().sum()
    (g,) = torch.autograd.grad(loss, w, create_graph=True)
    (loss + g.pow(2).sum()).backward()
    return g.detach()


accumulated: list[tuple[Any, ...]] = [
    (handed_in_by_iterators, (3, 2), (6,)),
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


@pytest.mark.parametrize(
    "case",
    [
        (simple, (3, 2)),
        pytest.param(
            (in_a_loop, (3, 2)),
            marks=fails_on_old_torch("inductor's chunks of five rows are wrong, torch.compile's too"),
        ),
        (stepped, (3, 2)),
    ],
    ids=lambda c: c[0].__name__,
)
def test_gradients_under_inductor(case: Any) -> None:
    trains_alike(with_leaves(*case), backend="inductor", sizes=(3, 5))


# -- how `.grad` lies in memory ---------------------------------------------------------------------------------------


@backends
def test_a_gradient_lies_in_memory_as_its_leaf(backend: str) -> None:
    def make() -> Any:
        turned = torch.randn(2, 3).t().requires_grad_()
        spread = torch.randn(3, 1).expand(3, 2).requires_grad_()
        spaced = torch.randn(3, 4)[:, ::2].requires_grad_()

        def program(x: Any) -> Any:
            (x @ (turned + spread * spaced)).sin().sum().backward()
            return [t.grad.stride() for t in (turned, spread, spaced)]

        return program, [turned, spread, spaced]

    trains_alike(make, backend=backend)


@backends
def test_a_gradient_that_is_there_stays_the_object_and_keeps_its_strides(backend: str) -> None:
    w = torch.randn(3, 2, requires_grad=True)
    w.grad = before = torch.zeros(2, 3).t()
    compiled = stator.compile(simple, backend=backend)
    for i in range(1, 3):
        compiled(w, torch.ones(4, 3))
        assert w.grad is before and before.stride() == (1, 3)
        assert torch.allclose(before, i * 4 * (torch.ones(4, 3) @ w.detach()).cos()[:1].expand(3, 2), atol=1e-5)


@backends
def test_a_view_of_what_the_program_holds_stays_one(backend: str) -> None:
    def program(w: Any, x: Any) -> Any:
        seed = torch.full((6,), 2.0)
        w.view(-1).backward(seed)
        seed.mul_(5)
        return w.grad * 1

    trains_alike(with_leaves(program, (3, 2)), backend=backend, breaks=None)


# -- results whose history has been used up ---------------------------------------------------------------------------


def loss_returned(w: Any, x: Any) -> Any:
    loss = (x @ w).sin().sum()
    loss.backward()
    return loss


def all_returned(w: Any, x: Any) -> Any:
    h = (x @ w).sin()
    loss = (h * h).sum()
    loss.backward()
    return {"loss": loss, "h": h}["loss"], h, h.detach(), h[0], loss.detach()


def product_returned(w: Any, x: Any) -> Any:
    h = x @ w  # only `x` is saved for the gradient of `w`
    h.sum().backward()
    return h


def kept(w: Any, x: Any) -> Any:
    loss = (x @ w).sin().sum()
    loss.backward(retain_graph=True)
    return loss


def nothing_saved(w: Any, x: Any) -> Any:
    loss = w.sum() * 3
    loss.backward()
    return loss, x + 1


def another_is_whole(w: Any, v: Any, x: Any) -> Any:
    loss = (x @ w).sin().sum()
    loss.backward()
    return loss, (x @ v).sin()


@backends
@pytest.mark.parametrize(
    ("program", "breaks"),
    # A graph that lives on holds the nodes that accumulate, which hooks might be on.
    [
        *((loss_returned, 0), (product_returned, 0), (all_returned, 0)),
        *((kept, None), (nothing_saved, None), (another_is_whole, None)),
    ],
)
def test_a_result_says_that_its_history_is_used_up(program: Any, breaks: Any, backend: str) -> None:
    if backend == "aot_eager" and program is kept:
        pytest.skip("a graph of AOTAutograd keeps nothing for a second time")
    count = 2 if program is another_is_whole else 1
    trains_alike(with_leaves(program, *[(3, 2)] * count), backend=backend, breaks=breaks)


@backends
def test_a_result_keeps_what_is_left_of_its_history(backend: str) -> None:
    def program(w: Any, v: Any, x: Any) -> Any:
        loss = v.sum() + (x @ w).sin().sum()
        loss.backward()
        return loss

    stats = trains_alike(with_leaves(program, (3, 2), (3, 2)), backend=backend, breaks=None)
    assert "a result keeps a part" in stats.breaks[0].reason


@backends
def test_a_tensor_of_the_program_that_has_got_a_history(backend: str) -> None:
    def make() -> Any:
        w = leaf(3, 2)

        def program(x: Any) -> Any:
            buffer = torch.zeros(len(x), 2)
            return fill(buffer, x)

        def fill(buffer: Any, x: Any) -> Any:
            buffer.copy_((x @ w).sin())
            buffer.sum().backward()
            return buffer

        return program, [w]

    trains_alike(make, backend=backend)


@backends
def test_a_tensor_from_before_that_has_got_a_history(backend: str) -> None:
    def filled(w: Any, buffer: Any, x: Any) -> None:
        buffer.copy_((x @ w).sin())
        buffer.sum().backward()

    def make() -> Any:
        w = leaf(3, 2)
        fill = wraps.pop()(filled)

        def program(x: Any) -> Any:
            buffer = torch.zeros(len(x), 2)
            fill(w, buffer, x)
            return buffer

        return stator.disable(program), [w]

    wraps = [lambda fn: stator.compile(fn, backend=backend), lambda fn: fn]
    trains_alike(make, backend=backend, breaks=None)


# -- errors are the engine's ------------------------------------------------------------------------------------------


def second_time(w: Any, x: Any) -> Any:
    loss = (x @ w).sin().sum()
    loss.backward()
    loss.backward()


def second_loss(w: Any, x: Any) -> Any:
    h = (x @ w).sin()
    h.sum().backward()
    (h * h).sum().backward()


def no_scalar(w: Any, x: Any) -> Any:
    (x @ w).backward()


def no_history(w: Any, x: Any) -> Any:
    x.sum().backward()


def written_since(w: Any, x: Any) -> Any:
    h = (x @ w).exp()
    h.add_(1)
    h.sum().backward()


def leaf_written_since(w: Any, x: Any) -> Any:
    loss = (x @ w).sin().sum() * w.sum()
    with torch.no_grad():
        w.mul_(2)
    loss.backward()


def wrong_shape(w: Any, x: Any) -> Any:
    (x @ w).backward(torch.ones(7, 7))


def no_inputs(w: Any, x: Any) -> Any:
    (x @ w).sum().backward(inputs=[])


def twice_by_function(w: Any, x: Any) -> Any:
    loss = (x @ w).sin().sum()
    loss.backward()
    return torch.autograd.grad(loss, w)


@backends
@pytest.mark.parametrize(
    "program",
    [
        *(second_time, second_loss, no_scalar, no_history, written_since, leaf_written_since, wrong_shape, no_inputs),
        twice_by_function,
    ],
)
def test_errors_are_those_of_the_engine(program: Any, backend: str) -> None:
    if backend == "aot_eager" and program is written_since:
        pytest.skip("AOTAutograd wants the backward of a graph while it is compiled")
    trains_alike(with_leaves(program, (3, 2)), backend=backend, breaks=None, sizes=(3, 5))


def test_an_error_is_caught_by_the_program() -> None:
    def program(w: Any, x: Any) -> Any:
        loss = (x @ w).sin().sum()
        loss.backward()
        try:
            loss.backward()
        except RuntimeError as error:
            return str(error)[:30], w.grad

    trains_alike(with_leaves(program, (3, 2)), breaks=None)
