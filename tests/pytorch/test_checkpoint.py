"""`torch.utils.checkpoint`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

import stator
from tests.pytorch.programs import agree


class Block(nn.Module):
    def __init__(self, *extra: nn.Module) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.3), nn.Linear(8, 4), *extra)
        self.options: dict[str, Any] = {"use_reentrant": False}

    def forward(self, x: Any) -> Any:
        y = checkpoint(self.inner, x, **self.options)
        return checkpoint(lambda a, scale: self.inner(a) * scale, y, scale=2.0, **self.options) + x


def make(*extra: Any, **options: Any) -> Any:
    block = Block(*extra)
    block.options |= options
    return block, (torch.randn(3, 4, requires_grad=True),)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_results_gradients_and_random_state(backend: str) -> None:
    agree(make, grad=True, backend=backend)


def test_options_that_change_nothing() -> None:
    agree(lambda: make(determinism_check="none", early_stop=False, preserve_rng_state=True, debug=False), grad=True)


@pytest.mark.parametrize("options", [{"use_reentrant": True}, {"preserve_rng_state": False}, {"debug": True}])
def test_options_left_to_python(options: Any) -> None:
    agree(lambda: make(**options), grad=True, breaks=None)


def test_statistics_updated_twice() -> None:
    agree(lambda: make(nn.BatchNorm1d(4)), grad=True, breaks=2)


def test_counter_updated_twice() -> None:
    class Counting(nn.Module):
        calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return x.sin()

    agree(lambda: make(Counting()), grad=True, breaks=2)


def test_sequence() -> None:
    layers = nn.Sequential(*[nn.Linear(4, 4) for _ in range(4)])
    run = lambda x: checkpoint_sequential(layers, 2, x, use_reentrant=False)  # noqa: E731
    agree(lambda: (run, (torch.randn(3, 4, requires_grad=True),)), grad=True)


def test_nodes_are_marked() -> None:
    seen = []

    def backend(gm: Any, inputs: Any) -> Any:
        seen.extend(n for n in gm.graph.nodes if "recompute" in n.meta)
        return gm.forward

    block, args = make()
    stator.compile(block, backend=backend)(*args)
    assert len(seen) == 9
    assert len({n.meta["ac_graph_id"] for n in seen}) == 2
