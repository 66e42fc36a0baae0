"""What a graph writes is kept before each call and put back when it fails: by the core, and by torch where it can't."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import stator
from stator.pytorch.graph.undo import Copies
from stator.pytorch.tensors import reader


@pytest.fixture(autouse=True)
def configured() -> None:
    assert reader.configure()


def copies_of(*tensors: Any) -> Copies:
    values: Any = [SimpleNamespace(host=tensor, meta=None) for tensor in tensors]
    return Copies(values, False)


def buffers() -> list[Any]:
    layer = torch.nn.BatchNorm1d(3)
    return [layer.running_mean, layer.running_var, layer.num_batches_tracked]


IN_THE_CORE = {
    "buffers": buffers,
    "several types": lambda: [torch.arange(6, dtype=d) for d in (torch.bfloat16, torch.int64, torch.uint8)],
    "complex": lambda: [torch.ones(4, dtype=torch.complex64)],
    "no elements": lambda: [torch.zeros(0, 3), torch.ones(2)],
    "part of a storage": lambda: [torch.arange(12.0)[3:7]],
    "permuted": lambda: [torch.arange(24.0).view(2, 3, 4).permute(2, 0, 1)],
    "six dimensions": lambda: [torch.arange(4.0).view(1, 2, 1, 2, 1, 1)],
    "over each other": lambda: [base := torch.arange(8.0), base[2:5]],
}
IN_TORCH = {
    "with gaps": lambda: [torch.arange(12.0)[::2]],
    "large": lambda: [torch.zeros(1 << 17)],
    "large together": lambda: [torch.zeros(1 << 15) for _ in range(3)],
    "many": lambda: [torch.zeros(2) for _ in range(65)],
    "conjugate": lambda: [torch.ones(4, dtype=torch.complex64).conj()],
    "wants gradients": lambda: [torch.ones(3, requires_grad=True)],
    "without memory": lambda: [torch.zeros(3, device="meta")],
}


@pytest.mark.parametrize("kind", [*IN_THE_CORE, *IN_TORCH])
def test_contents_and_versions_are_put_back(kind: str) -> None:
    tensors: Any = {**IN_THE_CORE, **IN_TORCH}[kind]()
    copies = copies_of(*tensors)
    before = [(tensor.detach().clone(), tensor._version) for tensor in tensors]
    for _ in range(2):
        state = copies.save(*tensors)
        assert isinstance(state[1], bytes) == (kind in IN_THE_CORE)
        with torch.no_grad():
            for tensor in tensors:
                tensor.fill_(7)
        copies.undo(state)
        for tensor, (expected, version) in zip(tensors, before, strict=True):
            assert tensor.is_meta or torch.equal(tensor, expected)
            assert tensor._version == version


def test_what_came_to_require_gradients_does_not_any_more() -> None:
    x, y = torch.arange(3.0), torch.arange(2.0)
    copies = copies_of(x, y)
    state = copies.save(x, y)
    assert isinstance(state[1], bytes)
    x.mul_(torch.ones(3, requires_grad=True))
    y.requires_grad_()
    copies.undo(state)
    assert x.tolist() == [0.0, 1.0, 2.0] and x._version == 0 and not x.requires_grad and x.is_leaf
    assert y.tolist() == [0.0, 1.0] and not y.requires_grad


def test_sizes_may_differ_from_call_to_call_and_calls_may_nest() -> None:
    copies = copies_of(torch.zeros(3))
    tensors = [torch.arange(float(size)) for size in (1, 5, 3)]
    states = [copies.save(tensor) for tensor in tensors]
    for tensor in tensors:
        tensor.zero_()
    for state in states:
        copies.undo(state)
    assert [tensor.tolist() for tensor in tensors] == [[*map(float, range(size))] for size in (1, 5, 3)]


def test_memory_that_was_replaced() -> None:
    x, y = torch.arange(3.0), torch.arange(4)
    copies = copies_of(x, y)
    state = copies.save(x, y)
    x.data = torch.zeros(3)
    y.data = torch.zeros(4, dtype=torch.int32)
    copies.undo(state)
    assert x.tolist() == [0.0, 1.0, 2.0] and y.tolist() == [0, 1, 2, 3]


def test_a_tensor_unlike_the_one_that_was_traced() -> None:
    x = torch.arange(3.0)
    copies = copies_of(x)
    x.data = torch.arange(3, dtype=torch.float64)
    state = copies.save(x)
    assert not isinstance(state[1], bytes)
    x.data.zero_()
    copies.undo(state)
    assert x.tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("grad", [True, False])
def test_a_backend_that_fails_after_it_has_written(grad: bool) -> None:
    layer, calls = torch.nn.BatchNorm1d(3), itertools.count()

    def backend(gm: Any, inputs: Any) -> Any:
        def run(*args: Any) -> Any:
            result = gm(*args)
            if next(calls) % 2:
                raise RuntimeError("too late")
            return result

        return run

    ordinary = torch.nn.BatchNorm1d(3)
    compiled = stator.compile(lambda x: layer(x), backend=backend)
    for _ in range(4):  # each second time the frame is executed again as ordinary Python
        x = torch.randn(5, 3, requires_grad=grad)
        assert torch.equal(compiled(x), ordinary(x))
        for buffer, expected in zip(layer.buffers(), ordinary.buffers(), strict=True):
            assert torch.equal(buffer, expected) and buffer._version == expected._version
