"""`backward()` in a traced function: the gradients of leaves are what the engine would give them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.training import BACKENDS, rows, trains_alike

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


@pytest.mark.parametrize(
    "case", [(simple, (3, 2)), (in_a_loop, (3, 2)), (stepped, (3, 2))], ids=lambda c: c[0].__name__
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
    [(loss_returned, 0), (all_returned, 0), (kept, None), (nothing_saved, None), (another_is_whole, None)],
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


# -- what is left to the engine ---------------------------------------------------------------------------------------


@backends
def test_a_history_from_before_is_left_to_the_engine(backend: str) -> None:
    def make() -> Any:
        w = leaf(3, 2)
        compiled = stator.compile(lambda h: h.sin().sum().backward(), backend=backend)

        def program(x: Any) -> Any:
            compiled(x @ w)

        return program, [w]

    trains_alike(make, breaks=None)
    compiled = stator.compile(lambda h: h.sin().sum().backward(), backend=backend)
    stator.reset()
    compiled(leaf(3).exp())
    (record,) = stator.stats().breaks
    assert record.code == "SB0205" and "computed before: h" in record.reason


@backends
def test_a_view_from_before_leads_to_what_it_is_a_view_of(backend: str) -> None:
    w = leaf(3, 2)
    compiled = stator.compile(lambda part: (part * part).sum().backward(), backend=backend)
    compiled(w[1:])
    assert w.grad is not None and torch.equal(w.grad[1:], 2 * w.detach()[1:]) and not w.grad[0].any()


class Hooked:
    """What programs and libraries may do with the gradient of a leaf; `seen` counts."""

    def __init__(self) -> None:
        self.seen = 0
        self.holding: list[Any] = []

    def see(self, *args: Any) -> None:
        self.seen += 1

    def on_gradient(self, w: Any) -> Any:
        return w.register_hook(self.see)

    def after_accumulation(self, w: Any) -> Any:
        return w.register_post_accumulate_grad_hook(self.see)

    def on_the_node(self, w: Any) -> Any:
        self.holding.append(w.view_as(w).grad_fn.next_functions[0][0])
        return self.holding[0].register_hook(self.see)

    def before_the_node(self, w: Any) -> Any:
        self.holding.append(w.view_as(w).grad_fn.next_functions[0][0])
        return self.holding[0].register_prehook(self.see)

    def on_several(self, w: Any) -> Any:
        return torch.autograd.graph.register_multi_grad_hook((w,), self.see)


WAYS = ("on_gradient", "after_accumulation", "on_the_node", "before_the_node", "on_several")


@backends
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_hooks_see_gradients(way: str, first: bool, backend: str) -> None:
    w, x = leaf(3, 2), torch.ones(4, 3)
    compiled = stator.compile(simple, backend=backend)
    if not first:
        compiled(w, x)
    stator.reset()
    hooked = Hooked()
    handle = getattr(hooked, way)(w)
    for i in range(1, 3):
        compiled(w, x)
        assert hooked.seen == i
    handle.remove()
    compiled(w, x)
    assert hooked.seen == 2
    expected = torch.zeros_like(w)
    for _ in range(3 + (not first)):
        expected += 4 * (x @ w.detach()).cos()[:1].expand(3, 2)
    assert torch.allclose(w.grad, expected, atol=1e-5)
    unknown = way in ("on_the_node", "before_the_node", "on_several")  # who holds the node may have a hook on it
    assert bool(stator.stats().breaks) is unknown
    assert not unknown or "gradient of w" in stator.stats().breaks[0].reason


@backends
def test_an_older_graph_that_is_still_there_is_no_harm(backend: str) -> None:
    w, x = leaf(3, 2), torch.ones(4, 3)
    held = (x @ w).sin()
    compiled = stator.compile(simple, backend=backend)
    for i in range(1, 3):
        compiled(w, x)
        assert torch.allclose(w.grad, i * 4 * (x @ w.detach()).cos()[:1].expand(3, 2), atol=1e-5)
    assert held.requires_grad


@backends
def test_saved_tensors_are_seen_by_hooks(backend: str) -> None:
    w, x = leaf(3, 2), torch.ones(4, 3)
    compiled = stator.compile(simple, backend=backend)
    compiled(w, x)
    seen: list[Any] = []

    def saved(t: Any) -> Any:
        seen.append(t.shape)
        return t

    with torch.autograd.graph.saved_tensors_hooks(saved, saved):
        compiled(w, x)
    assert len(seen) == 4


@backends
def test_anomaly_detection_detects(backend: str) -> None:
    def program(w: Any) -> None:
        (w * 0).sqrt().sum().backward()

    w = torch.ones(3, requires_grad=True)
    compiled = stator.compile(program, backend=backend)
    compiled(w)
    with torch.autograd.set_detect_anomaly(True), pytest.raises(RuntimeError, match="nan"), pytest.warns(UserWarning):
        compiled(w)


def test_it_can_be_turned_off() -> None:
    stats = trains_alike(with_leaves(simple, (3, 2)), options={"trace_backward": False}, breaks=None)
    assert "trace_backward is off" in stats.breaks[0].reason


@backends
def test_sparse_gradients(backend: str) -> None:
    def make() -> Any:
        table = nn.Embedding(5, 2, sparse=True)
        return lambda x: table(x.long()[:, 0] % 5).sin().sum().backward(), [table.weight]

    trains_alike(make, backend=backend, breaks=None)


# -- programs that train ----------------------------------------------------------------------------------------------


def network() -> Any:
    return nn.Sequential(nn.Linear(3, 8, bias=False), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, 2))


def training(make_optimizer: Any, *, set_to_none: bool = True, clip: Any = None, closure: bool = False) -> Any:
    def make() -> Any:
        net = network()
        leaves = list(net.parameters())
        optimizer = make_optimizer(leaves)

        def step(x: Any) -> Any:
            optimizer.zero_grad(set_to_none=set_to_none)
            loss = nn.functional.cross_entropy(net(x), torch.zeros(len(x), dtype=torch.long))
            loss.backward()
            if clip is not None:
                clip(leaves)
            optimizer.step()
            return loss

        def by_closure(x: Any) -> Any:
            def compute() -> Any:
                optimizer.zero_grad()
                loss = net(x).square().mean()
                loss.backward()
                return loss

            return optimizer.step(compute).detach()

        return by_closure if closure else step, [*leaves, *net.buffers()]

    return make


STEPS: dict[str, Any] = {
    "sgd": training(lambda p: torch.optim.SGD(p, 0.1)),
    "momentum": training(lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), set_to_none=False),
    "adam": training(lambda p: torch.optim.Adam(p, 0.01, foreach=False)),
    "adamw": training(lambda p: torch.optim.AdamW(p, 0.01, foreach=True)),
    "clipped": training(lambda p: torch.optim.SGD(p, 0.1), clip=lambda p: nn.utils.clip_grad_norm_(p, 0.1)),
    "clipped values": training(lambda p: torch.optim.SGD(p, 0.1), clip=lambda p: nn.utils.clip_grad_value_(p, 0.1)),
    "closure": training(lambda p: torch.optim.SGD(p, 0.1), closure=True),
}


@backends
@pytest.mark.parametrize("name", STEPS)
def test_a_step_of_training_is_one_graph(name: str, backend: str) -> None:
    stats = trains_alike(STEPS[name], backend=backend, sizes=(3, 3, 3, 5, 5, 4), tolerance=1e-4)
    assert stats.graphs <= 3  # state is made in the first call, sizes vary from the fourth


def test_a_step_of_training_under_inductor() -> None:
    trains_alike(STEPS["adamw"], backend="inductor", sizes=(3, 3, 5), tolerance=1e-4)


def adversaries() -> Any:
    first, second = network(), network()
    ours, theirs = (torch.optim.SGD(net.parameters(), 0.1) for net in (first, second))
    last = nn.Linear(2, 3)

    def step(x: Any) -> Any:
        fake = last(first(x))
        theirs.zero_grad()
        real_loss = nn.functional.softplus(-second(x)).mean() + nn.functional.softplus(second(fake.detach())).mean()
        real_loss.backward()
        theirs.step()
        ours.zero_grad()
        fake_loss = nn.functional.softplus(-second(fake)).mean()
        fake_loss.backward()
        ours.step()
        return real_loss, fake_loss

    return step, [*first.parameters(), *second.parameters(), *last.parameters()]


def recomputed() -> Any:
    net = network()

    def step(x: Any) -> Any:
        h = torch.utils.checkpoint.checkpoint(net[0], x, use_reentrant=False)
        loss = net[2:](h).square().sum()
        loss.backward()
        return loss

    return step, list(net.parameters())


def dropped() -> Any:
    net = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2))

    def step(x: Any) -> Any:
        loss = net(x).square().sum()
        loss.backward()
        return loss

    return step, list(net.parameters())


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x.sin()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * x * 2


def with_function() -> Any:
    net = network()

    def step(x: Any) -> Any:
        loss = Doubled.apply(net(x)).sum()
        loss.backward()
        return loss

    return step, list(net.parameters())


def tied() -> Any:
    net = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    net[1].weight = net[0].weight

    def step(x: Any) -> Any:
        loss = net[1](net[0](x).tanh()).sum()
        loss.backward()
        return loss

    return step, list(net.parameters())


def partly_frozen() -> Any:
    net = network()
    net[0].requires_grad_(False)

    def step(x: Any) -> Any:
        net(x).sin().sum().backward()
        return net[0].weight.grad is None

    return step, list(net.parameters())


def with_autocast() -> Any:
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))

    def step(x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = net(x).float().square().mean()
        loss.backward()
        return loss.detach()

    return step, list(net.parameters())


def complex_numbers() -> Any:
    w = torch.randn(3, 2, dtype=torch.complex64, requires_grad=True)

    def step(x: Any) -> Any:
        loss = (x.to(torch.complex64) @ w).abs().sum()
        loss.backward()
        return loss.detach()

    return step, [w]


def inside_a_method() -> Any:
    class Trainer:
        def __init__(self) -> None:
            self.net = network()
            self.optimizer = torch.optim.SGD(self.net.parameters(), 0.1)
            self.losses: list[Any] = []

        def step(self, x: Any) -> Any:
            loss = self.net(x).square().mean()
            self.backward(loss)
            self.losses.append(loss.detach())
            return len(self.losses)

        def backward(self, loss: Any) -> None:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    trainer = Trainer()
    return trainer.step, list(trainer.net.parameters())


def penalised() -> Any:
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))

    def step(x: Any) -> Any:
        loss = net(x).square().mean()
        grads = torch.autograd.grad(loss, list(net.parameters()), create_graph=True)
        (loss + sum(g.square().sum() for g in grads)).backward()
        return loss.detach()

    return step, list(net.parameters())


@backends
@pytest.mark.parametrize(
    "make",
    [
        *(adversaries, recomputed, dropped, with_function, tied, partly_frozen, with_autocast, complex_numbers),
        *(inside_a_method, penalised),
    ],
)
def test_programs_that_train(make: Any, backend: str) -> None:
    trains_alike(make, seeded, backend=backend, tolerance=1e-4)


def seeded(n: int) -> Any:
    torch.manual_seed(n)
    return rows(n)
