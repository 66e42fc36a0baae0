"""What one compile() call has compiled serves others that ask for the same, where the guards hold."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn

import stator

BACKENDS = ("eager", "aot_eager")


class Block(nn.Module):
    def __init__(self, scale: float = 2.0) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = scale
        self.called = False

    def forward(self, x: Any) -> Any:
        self.called = True
        return torch.relu(self.linear(x)) * self.scale


def checked(compiled: list[Any], modules: list[Block], *sizes: int) -> list[int]:
    """How many graphs there are after each size, of which every module is given one; results are those of eager."""
    stator.reset()
    counts = []
    for n in sizes:
        for fn, module in zip(compiled, modules, strict=True):
            module.called = False
            x, y = (torch.randn(n, 4, requires_grad=True) for _ in range(2))
            y.data.copy_(x.data)
            expected = torch.relu(nn.functional.linear(y, module.linear.weight, module.linear.bias)) * module.scale
            found = fn(x)
            torch.testing.assert_close(found, expected)
            expected.sum().backward()
            gradient = module.linear.weight.grad
            module.linear.weight.grad = None
            found.sum().backward()
            torch.testing.assert_close(x.grad, y.grad)
            torch.testing.assert_close(module.linear.weight.grad, gradient)
            module.linear.weight.grad = None
            assert module.called
        counts.append(stator.stats().graphs)
    return counts


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("in_place", [False, True])
def test_blocks_compiled_one_by_one_share_graphs(backend: str, in_place: bool) -> None:
    stator.install()
    try:
        modules = [Block() for _ in range(4)]
        if in_place:
            for module in modules:
                module.compile(backend=backend)
            compiled: list[Any] = list(modules)
        else:
            compiled = [torch.compile(module, backend=backend) for module in modules]
        # The second size is met by all of them, and is symbolic from then on.
        assert checked(compiled, modules, 3, 5, 7, 5, 3) == [1, 2, 2, 2, 2]
        assert not any(b.count for b in stator.stats().breaks)
    finally:
        stator.uninstall()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_block_that_differs_has_a_graph_of_its_own(backend: str) -> None:
    modules = [Block(2.0), Block(3.0), Block(2.0)]
    compiled = [stator.compile(module, backend=backend) for module in modules]
    assert checked(compiled, modules, 3) == [2]
    modules[0].scale = 3.0
    modules[2].linear = nn.Linear(4, 4, bias=False)
    x = torch.randn(3, 4, requires_grad=True)
    torch.testing.assert_close(compiled[0](x), torch.relu(modules[0].linear(x)) * 3.0)
    assert stator.stats().graphs == 2
    torch.testing.assert_close(compiled[2](x), torch.relu(modules[2].linear(x)) * 2.0)
    assert stator.stats().graphs == 3


def test_settings_and_backends_that_differ_share_nothing() -> None:
    module = Block()
    seen: list[Any] = []

    def backend(gm: Any, inputs: Any) -> Any:
        seen.append(gm)
        return gm.forward

    compiled = [
        stator.compile(module, backend="eager"),
        stator.compile(module, backend="aot_eager"),
        stator.compile(module, backend=backend),
        stator.compile(module, backend=lambda gm, inputs: gm.forward),
        stator.compile(module, backend="eager", dynamic=True),
        stator.compile(module, backend="eager", fullgraph=True),
        stator.compile(module, backend="eager", options={"assume_static_by_default": False}),
    ]
    stator.reset()
    for fn in compiled:
        fn(torch.ones(3, 4))
    assert (stator.stats().graphs, len(seen)) == (len(compiled), 1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_frame_that_breaks_is_traced_by_each(backend: str) -> None:
    def make(k: int) -> Any:
        def fn(x: Any) -> Any:
            y = x * 2
            torch._dynamo.graph_break()
            return y + k

        return fn

    compiled = [stator.compile(make(k), backend=backend, recompile_limit=2) for k in range(6)]
    stator.reset()
    for k, fn in enumerate(compiled):
        assert torch.equal(fn(torch.ones(2)), torch.full((2,), 2.0 + k))
    assert not [b for b in stator.stats().breaks if b.code != "SB0301"], stator.stats().breaks


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_has_been_shared_outlives_who_has_compiled_it(backend: str) -> None:
    stator.reset()
    first, second = Block(), Block()
    x = torch.randn(3, 4)
    compiled = stator.compile(first, backend=backend)
    compiled(x)
    another = stator.compile(second, backend=backend)
    another(x)
    gone = weakref.ref(first.linear.weight)
    del first, compiled
    gc.collect()
    assert gone() is None
    torch.testing.assert_close(another(x), torch.relu(second.linear(x)) * 2.0)
    assert stator.stats().graphs == 1


def test_functions_of_one_code_share_what_does_not_depend_on_their_cells() -> None:
    def make(k: int) -> Any:
        return lambda x: x + k

    stator.reset()
    compiled = [stator.compile(make(k), backend="eager") for k in (1, 2, 1)]
    assert [int(fn(torch.zeros(()))) for fn in compiled] == [1, 2, 1]
    assert stator.stats().graphs == 2
    assert stator.stats().recompiles == 0
