"""`backward()` that is left to the engine: gradients go on outside of the graph, or somebody sees them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.test_backward import leaf, simple, with_leaves
from tests.pytorch.training import BACKENDS, trains_alike

backends = pytest.mark.parametrize("backend", BACKENDS)


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


def test_the_break_is_named_before_which_it_was_computed() -> None:
    model = nn.Linear(3, 3)

    def step(x: Any) -> Any:
        y = model(x)
        stator.graph_break()
        (y * y).mean().backward()
        return y.detach()

    def rest(h: Any) -> None:
        stator.graph_break()
        h.sum().backward()

    told = {}
    for function, given in ((step, torch.ones(2, 3)), (rest, leaf(3).exp())):
        stator.reset()
        stator.compile(function, backend="eager")(given)
        explicit, engine = stator.stats().breaks
        assert (explicit.code, engine.code) == ("SB0301", "SB0205")
        told[function] = engine.reason.partition(": gradients go on into ")[2]
    line = step.__code__.co_firstlineno + 2
    assert told[step] == f"what was computed before the break at test_backward_left.py:{line} (SB0301): y"
    assert told[rest] == "what was computed before: h", "the break has nothing to do with it"


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


@pytest.mark.parametrize("backend", [*BACKENDS, "inductor"])
def test_what_a_backend_cannot_differentiate_twice_breaks(backend: str) -> None:
    def penalty(x: Any, w: Any, b: Any) -> Any:
        loss = nn.functional.linear(x, w, b).abs().mean()
        return torch.autograd.grad(loss, x, create_graph=True)[0]

    compiled = stator.compile(penalty, backend=backend)
    for size in (8, 5, 6):
        args = [leaf(size), leaf(1, size), leaf(1)]
        expected, got = penalty(*args), compiled(*args)
        assert torch.equal(got, expected) and got.requires_grad
    assert (stator.stats().graph_breaks > 0) == (backend != "eager")


def test_a_backend_that_fails_by_itself_is_named() -> None:
    def duck(gm: Any, inputs: Any) -> Any:
        raise RuntimeError("duck!")

    compiled = stator.compile(lambda w: torch.autograd.grad(w.sin().sum(), w)[0], backend=duck)
    with pytest.raises(stator.BackendError, match="duck!"):
        compiled(leaf(3))
