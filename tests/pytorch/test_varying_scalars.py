"""Floats that vary from call to call, where operators take a number or a tensor: no graph for each value."""

from typing import Any

import pytest
import torch

import stator

BACKENDS = ["eager", "aot_eager", "inductor"]
VALUES = (0.1, 0.25, 0.3, 0.45, 0.75)


def in_place(x: Any, w: float) -> Any:
    made = torch.zeros_like(x)
    made[0] = w
    made[1:].fill_(w).clamp_(0.0, w * 2)
    return made + x


def bounded(x: Any, w: float) -> Any:
    return x.clamp(max=w) + torch.clamp(x, -w, w) + x.clip(0.05, w + 1) + torch.clamp_min(x, w)


#: what is given a float tensor and a number, and has a gradient for the tensor
FUNCTIONS: dict[str, Any] = {
    "bounds": lambda x, w: x * bounded(x.detach(), w),
    "powers of it": lambda x, w: (torch.pow(w, x.detach()) + w ** x.detach()) * x,
    "a difference": lambda x, w: w - x,
    "quotients": lambda x, w: torch.fmod(x, w) + x % w + (w % x.detach() + x.detach() // w + w // x.detach()),
    "masks": lambda x, w: x.masked_fill(x > w, w) * torch.where(x > 0.5, w, x) * x.where(x < 0.7, w),
    "weights": lambda x, w: torch.lerp(x, x * x, w) + x.lerp(x.sin(), weight=1 - w),
    "filled": lambda x, w: torch.full((3, 1), w) * torch.full_like(x, w) + x.new_full((1,), w * 2) + x,
    "in place": in_place,
}


def made(name: str, size: int, dtype: Any = torch.float32) -> Any:
    generator = torch.Generator().manual_seed(size + len(name))
    return (torch.rand(3, size, generator=generator) + 0.05).to(dtype).requires_grad_()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_one_graph_for_all_values(name: str, backend: str) -> None:
    function = FUNCTIONS[name]
    compiled = stator.compile(function, backend=backend)
    for size, value in zip((2, 5, 7, 7, 3), VALUES, strict=True):
        x, y = made(name, size), made(name, size)
        expected, got = function(x, value), compiled(y, value)
        torch.testing.assert_close(got, expected, rtol=0.0 if backend == "eager" else 2e-6, atol=0.0)
        gradient = torch.autograd.grad(got.square().sum(), y)
        torch.testing.assert_close(gradient, torch.autograd.grad(expected.square().sum(), x), rtol=2e-5, atol=1e-6)
    stats = stator.stats()
    assert stats.graphs <= 3 and not stats.breaks


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int64])
@pytest.mark.parametrize("name", ["bounds", "a difference", "masks", "filled"])
def test_other_types_are_as_they_are(name: str, dtype: Any) -> None:
    function = FUNCTIONS[name]
    compiled = stator.compile(function, backend="aot_eager")
    for value in VALUES:
        x = (made(name, 4).detach() * 4).to(dtype)
        torch.testing.assert_close(compiled(x, value), function(x, value), rtol=0, atol=0)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_at_a_bound(backend: str) -> None:
    # With tensors as bounds torch gives half of it, or all, for elements that are equal to a bound.
    compiled = stator.compile(bounded, backend=backend)
    for value in (0.5, 1.0, 1.5):
        x, y = (torch.tensor([-1.0, 0.05, 0.5, 1.0, 1.5, 2.5], requires_grad=True) for _ in range(2))
        bounded(x, value).sum().backward()
        compiled(y, value).sum().backward()
        assert torch.equal(x.grad, y.grad)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_no_number_and_bounds_that_cross(backend: str) -> None:
    def function(x: Any, low: float, high: float) -> Any:
        return x.clamp(low, high), x.clamp(min=low), torch.where(x > low, x, high)

    compiled = stator.compile(function, backend=backend)
    x = torch.tensor([-1.0, float("nan"), 0.5, float("inf")])
    for low, high in ((0.1, 0.2), (0.3, 0.2), (0.4, float("nan")), (float("-inf"), 0.7), (float("nan"), float("inf"))):
        torch.testing.assert_close(compiled(x, low, high), function(x, low, high), equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_numbers_that_the_graph_reads(backend: str) -> None:
    def function(x: Any) -> Any:
        limit = x.max().item() * 0.5
        return x.clamp(max=limit), limit - x, torch.full((2,), limit)

    compiled = stator.compile(function, backend=backend)
    for size in (3, 4, 6):
        x = torch.rand(size)
        torch.testing.assert_close(compiled(x), function(x), rtol=2e-6, atol=0)
    assert stator.stats().graphs <= 2
