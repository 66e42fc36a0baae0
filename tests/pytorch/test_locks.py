"""Locks around what is done with tensors: the graph runs under them, or before they are taken."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.contention import contended
from tests.pytorch.gradients import BACKENDS, alike


class Guarded(nn.Module):
    """A module that prepares itself once, under a lock."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.ready = False
        self.calls = 0
        self.scale = nn.Parameter(torch.tensor(2.0))
        self.register_buffer("total", torch.zeros(()))

    def prepare(self) -> None:
        if not self.ready:
            with self.lock:
                if not self.ready:
                    self.ready = True


class Prepared(Guarded):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * self.scale
        self.prepare()
        return y.sin()


class Counting(Guarded):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.prepare()
        self.total.add_(x.detach().sum())
        return x * self.scale


class Inside(Guarded):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with self.lock:
            self.calls += 1
            self.total.copy_(self.total * 2 + x.detach().sum())
            y = x * self.scale + self.total
        return y * self.calls


class Earlier(Guarded):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.total.add_(1)
        with self.lock:
            self.calls += 1
        return x * self.scale * self.calls


KINDS = [Prepared, Counting, Inside, Earlier]


def _made(kind: Any) -> Any:
    module = kind()
    return module, [module.scale]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
def test_modules(kind: Any, backend: str) -> None:
    alike(lambda: _made(kind), backend=backend, breaks=0)


def test_with_inductor() -> None:
    alike(lambda: _made(Inside), backend="inductor", sizes=(3, 5), tolerance=1e-6, breaks=0)


@pytest.mark.parametrize("kind", [Inside, Earlier])
def test_what_has_changed_meanwhile_is_seen(kind: Any) -> None:
    """`Earlier` has run its graph when it comes to the lock: that is undone."""
    plain, traced, x = kind(), kind(), torch.ones(3)
    call = stator.compile(traced, backend="eager", fullgraph=True)
    assert torch.equal(call(x), plain(x))
    plain.calls = 7
    assert torch.equal(contended(traced.lock, lambda: call(x), lambda: vars(traced).update(calls=7)), plain(x))
    assert torch.equal(traced.total, plain.total) and traced.calls == 8
    assert not traced.lock.locked()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_graph_that_fails_gives_the_locks_back(backend: str) -> None:
    def pick(model: Guarded, x: torch.Tensor, i: torch.Tensor) -> Any:
        with model.lock:
            model.calls += 1
            try:
                return x[i]
            except IndexError:
                return model.calls

    model, call = Guarded(), stator.compile(pick, backend=backend)
    assert call(model, torch.ones(3), torch.tensor([0])).tolist() == [1]
    assert call(model, torch.ones(3), torch.tensor([5])) == 2
    assert model.calls == 2 and not model.lock.locked()


def test_held_while_the_graph_runs() -> None:
    held: list[bool] = []
    model = Inside()

    def backend(gm: torch.fx.GraphModule, _: Any) -> Any:
        def run(*args: torch.Tensor) -> Any:
            held.append(model.lock.locked())
            return gm(*args)

        return run

    stator.compile(model, backend=backend, fullgraph=True)(torch.ones(3))
    assert held == [True] and not model.lock.locked()


def test_an_operator_of_the_programs_may_want_the_lock() -> None:
    model = Guarded()

    @torch.library.custom_op("stator_test_locks::under_lock", mutates_args=())
    def under_lock(x: torch.Tensor) -> torch.Tensor:
        with model.lock:
            return x + 1

    under_lock.register_fake(torch.empty_like)

    def use(x: torch.Tensor) -> torch.Tensor:
        model.prepare()
        model.total.add_(1)
        return under_lock(x)

    stator.reset()
    assert torch.equal(stator.compile(use, backend="eager")(torch.ones(3)), torch.full((3,), 2.0))
    assert model.ready and model.total == 1
    assert [b.reason for b in stator.stats().breaks][:1] == ["call of the C function lock.acquire"]
