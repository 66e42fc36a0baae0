"""The first call of a lazy module."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import stator
from tests.pytorch.gradients import BACKENDS, alike

backends = pytest.mark.parametrize("backend", BACKENDS)


def images(n: int) -> Any:
    return (torch.linspace(0, 1, n * 2 * 4).reshape(n, 2, 4),)


def build(*layers: Any, inner: Any = None) -> Any:
    def make() -> Any:
        torch.manual_seed(3)
        model = nn.Sequential(*[layer() for layer in layers])
        return (inner(model) if inner else model), []

    return make


layered = build(
    lambda: nn.LazyConv1d(3, 1),
    nn.LazyBatchNorm1d,
    nn.ReLU,
    nn.Flatten,
    lambda: nn.LazyLinear(5),
    lambda: nn.Linear(5, 2),
)


@backends
def test_lazy_layers(backend: str) -> None:
    alike(layered, images, backend=backend, breaks=0)


def test_lazy_layers_under_inductor() -> None:
    alike(layered, images, backend="inductor", sizes=(3,), breaks=0, tolerance=1e-5)


@backends
def test_the_parameters_are_those_of_eager(backend: str) -> None:
    torch.manual_seed(3)
    expected, given = nn.LazyLinear(2), nn.LazyLinear(2)
    torch.manual_seed(5)
    expected(torch.ones(1, 4))
    torch.manual_seed(5)
    stator.compile(given, backend=backend, fullgraph=True)(torch.ones(1, 4))
    assert type(given) is nn.Linear and torch.equal(given.weight, expected.weight)
    assert not given._forward_pre_hooks and torch.equal(given.bias, expected.bias)


@backends
def test_random_numbers_are_drawn_in_the_programs_order(backend: str) -> None:
    def drawing(model: Any) -> Any:
        return lambda x: model(x + torch.rand(4))

    alike(build(lambda: nn.LazyLinear(2), inner=drawing), images, backend=backend, sizes=(2,), calls=1)


def test_a_module_of_the_programs_is_left_to_python() -> None:
    class Own(nn.modules.lazy.LazyModuleMixin, nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.UninitializedParameter()

        def initialize_parameters(self, x: Any) -> None:
            self.weight.materialize(x.shape[-1:])
            self.weight.data.copy_(x.flatten()[: x.shape[-1]])

        def forward(self, x: Any) -> Any:
            return x * self.weight

    alike(build(Own), images, sizes=(2,), calls=2)


def test_an_argument_that_does_not_fit() -> None:
    alike(build(lambda: nn.LazyConv2d(3, 1)), lambda n: (torch.ones(n),), sizes=(2,), calls=1)


def linear_inside(x: Any) -> Any:
    torch.manual_seed(0)
    return nn.LazyLinear(3)(x) * 2


def normalised_inside(x: Any) -> Any:
    return nn.LazyBatchNorm1d()(x).relu()


def layers_inside(x: Any) -> Any:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.LazyConv1d(3, 1), nn.Flatten(), nn.LazyLinear(2))
    return layers(x) + 1


@backends
@pytest.mark.parametrize(("program", "made"), [(linear_inside, 1), (normalised_inside, 1), (layers_inside, 2)])
def test_a_module_made_inside_breaks_once(program: Any, made: int, backend: str) -> None:
    alike(lambda: (program, []), images, backend=backend, sizes=(3,), calls=10, breaks=made, tolerance=1e-6)
    assert stator.stats().graphs <= 1 + made


def test_what_is_asked_of_parameters_without_sizes() -> None:
    def program(x: Any, module: Any) -> Any:
        mean = module.running_mean
        found = [isinstance(mean, kind) for kind in (nn.Parameter, nn.Buffer, torch.Tensor)]
        try:
            return found, mean is None, mean.shape, x + 1
        except RuntimeError as e:
            return found, mean is None, str(e), x + 1

    module, x = nn.LazyBatchNorm1d(), torch.ones(2)
    assert str(stator.compile(program, backend="eager")(x, module)) == str(program(x, module))


def test_parameters_that_get_their_sizes() -> None:
    def program(x: Any) -> Any:
        parameter = nn.UninitializedParameter()
        parameter.materialize((2,))
        nn.init.ones_(parameter)
        return type(parameter), x * parameter

    assert str(stator.compile(program, backend="eager")(torch.ones(2))) == str(program(torch.ones(2)))


KINDS: dict[str, Any] = {
    "linear": (lambda: nn.LazyLinear(3), lambda n: torch.linspace(-1, 1, n * 4).reshape(n, 4)),
    "convolution": (lambda: nn.LazyConv1d(3, 1), lambda n: images(n)[0]),
    "statistics": (nn.LazyBatchNorm1d, lambda n: images(n)[0]),
}


@backends
@pytest.mark.parametrize("name", KINDS)
def test_modules_that_are_given(name: str, backend: str) -> None:
    """One after the other, each of them for the first time: what becomes of it, and its gradients, are eager's."""
    build_one, inputs = KINDS[name]

    def run(module: Any, x: Any) -> Any:
        return module(x.sin()) * 2

    compiled = stator.compile(run, backend=backend, fullgraph=True)
    for seed in (1, 2):
        modules = build_one(), build_one()
        for n in (3, 3, 5):
            results = []
            for called, module in zip((run, compiled), modules, strict=True):
                torch.manual_seed(seed)
                module.zero_grad()
                x = inputs(n).requires_grad_()
                out = called(module, x)
                out.square().sum().backward()
                results.append((out, x.grad, [p.grad for p in module.parameters()], dict(module.state_dict())))
            torch.testing.assert_close(*results)
            one, other = modules
            assert type(one) is type(other)
            assert len(one._forward_pre_hooks) == len(other._forward_pre_hooks) == 0
