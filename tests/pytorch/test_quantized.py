"""Quantised tensors made in a compiled function."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch

import stator
from tests.pytorch.gradients import BACKENDS, alike

backends = pytest.mark.parametrize("backend", BACKENDS)


def numbers(n: int) -> Any:
    x = (torch.linspace(-20, 20, n * 3).sin() * 30).reshape(n, 3)
    x[0, 0], x[0, 1], x[0, 2] = float("inf"), float("-inf"), float("nan")
    return (x.requires_grad_(),)


def by_channel(x: Any, dtype: Any = torch.qint8) -> Any:
    return torch.quantize_per_channel(x, torch.tensor([0.1, 0.037, 2.0]), torch.tensor([0, 3, 5]), 1, dtype)


def by_tensor(x: Any, dtype: Any = torch.qint8, scale: Any = 0.1) -> Any:
    return torch.quantize_per_tensor(x, scale, 3, dtype=dtype)


def described(q: Any) -> Any:
    texts = [
        str(q.dtype),
        str(q.qscheme()),
        q.is_quantized,
        q.dim(),
        tuple(q.shape),
        q.size(0),
        q.numel(),
        q.requires_grad,
    ]
    return [*map(str, texts), q.dequantize() + 1, q.int_repr() * 1, torch.dequantize(q)]


PROGRAMS = {
    "qint8": lambda x: described(by_tensor(x)),
    "quint8": lambda x: described(by_tensor(x, torch.quint8, 0.037)),
    "scaled": lambda x: (by_tensor(x).q_scale(), by_tensor(x).q_zero_point()),
    "channels": lambda x: described(by_channel(x)),
    "scales": lambda x: (by_channel(x).q_per_channel_scales(), by_channel(x).q_per_channel_zero_points()),
    "axis": lambda x: (by_channel(x, torch.quint8).q_per_channel_axis(), x + 1),
    "tensors": lambda x: described(torch.quantize_per_tensor(x, torch.tensor(0.1), torch.tensor(3), torch.quint8)),
    "numbers in tensors": lambda x: described(
        torch.quantize_per_tensor(x, float(torch.full((1,), 0.1)), int(torch.full((1,), 3)), torch.qint8)
    ),
    "arranged": lambda x: by_tensor(x).reshape(-1).clone().view(3, -1).transpose(0, 1).permute(1, 0).dequantize(),
    "relu": lambda x: torch.relu(by_tensor(x)).dequantize(),
    "with gradients": lambda x: by_tensor(x).dequantize() * x.nan_to_num(0, 0, 0),
}


@backends
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_asked_of_one(name: str, backend: str) -> None:
    alike(lambda: (PROGRAMS[name], []), numbers, backend=backend, breaks=0)


def test_with_inductor() -> None:
    alike(lambda: (PROGRAMS["qint8"], []), numbers, backend="inductor", sizes=(4,), calls=1, breaks=0)


@backends
@pytest.mark.parametrize("make", [by_tensor, by_channel])
def test_one_that_is_a_result(make: Any, backend: str) -> None:
    def run(x: Any) -> Any:
        q = make(x)
        x.detach().zero_()
        return q, x.sum()

    compiled = stator.compile(run, backend=backend)
    for n in (4, 7):
        (got, _), (expected, _) = compiled(*numbers(n)), run(*numbers(n))
        assert got.dtype is expected.dtype and got.qscheme() == expected.qscheme()
        assert torch.equal(got.int_repr(), expected.int_repr()) and torch.equal(got.dequantize(), expected.dequantize())
    assert stator.stats().graph_breaks == 0


@backends
def test_operations_without_a_model_are_left_to_python(backend: str) -> None:
    def run(x: Any) -> Any:
        q = by_tensor(x)
        return torch.max_pool2d(q.view(1, 1, *q.shape), 2).dequantize(), q[1:].dequantize(), q.sin if False else 1

    alike(lambda: (run, []), numbers, backend=backend, sizes=(4, 7))


@backends
def test_what_it_does_not_take_raises_as_in_eager(backend: str) -> None:
    compiled = stator.compile(by_tensor, backend=backend)
    with pytest.raises(RuntimeError, match="Quantize only works on Float Tensor"):
        compiled(torch.ones(3, dtype=torch.float64))


def dynamic(backend: str, sizes: Any) -> Any:
    torch.manual_seed(0)
    plain = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    module = torch.ao.quantization.quantize_dynamic(plain, {torch.nn.Linear})
    compiled = stator.compile(module, backend=backend)
    for n in sizes:
        x = torch.linspace(-1, 1, n * 3).reshape(n, 3)
        torch.testing.assert_close(compiled(x), module(x))
    assert stator.stats().graph_breaks == 0
    return module, compiled


@backends
def test_layers_with_packed_weights(backend: str) -> None:
    module, compiled = dynamic(backend, (4, 4, 7, 5))
    module[0] = torch.ao.nn.quantized.dynamic.Linear(3, 4)
    x = torch.ones(4, 3)
    torch.testing.assert_close(compiled(x), module(x))


def test_layers_with_packed_weights_and_inductor() -> None:
    dynamic("inductor", (4,))


def test_what_is_packed_is_not_kept() -> None:
    from stator.pytorch.modules import packed_weights

    before = len(packed_weights._calls)
    dynamic("eager", (4,))
    stator.reset()
    gc.collect()
    assert len(packed_weights._calls) <= before


@backends
def test_gradients_through_packed_weights_are_left_to_eager(backend: str) -> None:
    module, compiled = dynamic(backend, (4,))
    x = torch.ones(4, 3, requires_grad=True)
    assert compiled(x).requires_grad is module(x).requires_grad


class Static(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.quant, self.dequant = torch.ao.quantization.QuantStub(), torch.ao.quantization.DeQuantStub()
        self.conv, self.relu, self.linear = torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        x = self.relu(self.conv(self.quant(x)))
        return self.dequant(self.linear(x.flatten(2).permute(0, 2, 1).contiguous()))


@backends
@pytest.mark.parametrize("fused", [False, True])
def test_a_model_that_is_quantised_throughout(fused: bool, backend: str) -> None:
    torch.manual_seed(0)
    model: Any = Static().eval()
    if fused:
        model = torch.ao.quantization.fuse_modules(model, [["conv", "relu"]])
    model.qconfig = torch.ao.quantization.get_default_qconfig("x86")
    prepared = torch.ao.quantization.prepare(model)
    prepared(torch.randn(9, 3, 6, 6))
    converted = torch.ao.quantization.convert(prepared)
    compiled = stator.compile(converted, backend=backend)
    for n in (4, 4, 7):
        x = torch.randn(n, 3, 6, 6)
        torch.testing.assert_close(compiled(x), converted(x))
    assert not stator.stats().breaks
