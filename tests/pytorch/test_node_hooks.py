"""Hooks on nodes of autograd's graph: `y.grad_fn.register_hook(…)` and `register_prehook(…)`."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stator
from tests.pytorch.gradients import alike
from tests.pytorch.training import BACKENDS

backends = pytest.mark.parametrize("backend", BACKENDS)


def scaled(x: Any) -> Any:
    y = x * 2
    y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 10,))
    return y.exp()


def after_use(x: Any) -> Any:
    y = x * 2
    z = y.sin()
    y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 10 + 1,))
    return z + y


def after_hooks(x: Any) -> Any:
    """A hook on the tensor is called before those on its node, whichever was registered first."""
    y = x * 2
    y.grad_fn.register_prehook(lambda gradients: (gradients[0] + 1,))
    y.register_hook(lambda g: g * 10)
    y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 3,))
    return y.sin()


def capturing(x: Any) -> Any:
    w = x.detach().exp()
    y = x.view(-1, 1) * 2
    y.grad_fn.register_prehook(lambda gradients: (gradients[0] * w.view(-1, 1),))
    return y.sin()


def only_looking(x: Any) -> Any:
    y = x * 2
    y.grad_fn.register_prehook(lambda gradients: None)
    return y.sin()


def written_later(x: Any) -> Any:
    y = x * 2
    y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 10,))
    y.mul_(3)
    return y + 1


def partly_written_later(x: Any) -> Any:
    y = x * 2
    y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 10,))
    y[0].mul_(3)
    return y + 1


def returned(x: Any) -> Any:
    y = x * 2
    y.grad_fn.register_prehook(lambda gradients: (gradients[0] + 1,))
    return y, y.sin()


def with_backward(x: Any) -> Any:
    y = x * 2
    y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 10,))
    y.sin().sum().backward()
    return x.grad * 1


def removed(x: Any) -> Any:
    y = x * 2
    handle = y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 10,))
    z = y.exp()
    handle.remove()
    return z


@backends
@pytest.mark.parametrize(
    "program",
    [
        *(scaled, after_use, after_hooks, capturing, only_looking, written_later, partly_written_later, returned),
        *(with_backward, removed),
    ],
)
def test_what_is_called_before_a_node_is_part_of_the_graph(program: Any, backend: str) -> None:
    alike(lambda: (program, []), backend=backend, breaks=0, tolerance=1e-5)


def test_under_inductor() -> None:
    alike(lambda: (scaled, []), backend="inductor", sizes=(3, 5), breaks=0, tolerance=1e-5)


def after_the_node(x: Any) -> Any:
    y = x * 2
    y.grad_fn.register_hook(lambda into, out: (into[0] * out[0], *into[1:]))
    return y.exp()


def of_several_results(x: Any) -> Any:
    first, second = torch.stack([x, x]).unbind()
    first.grad_fn.register_prehook(lambda gradients: tuple([g * 10 for g in gradients]))
    return first.exp() * second


def of_an_older_node(x: Any) -> Any:
    y = x * 2
    node = y.grad_fn
    y.mul_(3)
    node.register_prehook(lambda gradients: (gradients[0] * 10,))
    return y.exp()


@backends
@pytest.mark.parametrize("program", [after_the_node, of_several_results, of_an_older_node])
def test_other_hooks_are_registered_by_python(program: Any, backend: str) -> None:
    alike(lambda: (program, []), backend=backend, tolerance=1e-5)


@backends
def test_at_most_one_break(backend: str) -> None:
    alike(lambda: (after_the_node, []), backend=backend, breaks=0 if backend == "eager" else 1, tolerance=1e-5)


@backends
def test_a_hook_that_acts(backend: str) -> None:
    def make() -> Any:
        seen: list[int] = []

        def program(x: Any) -> Any:
            y = x * 2
            y.grad_fn.register_prehook(lambda gradients: seen.append(len(gradients)))
            y.grad_fn.register_hook(lambda into, out: seen.append(len(into) * 10))
            return y.exp(), list(seen)

        return program, []

    alike(make, backend=backend, tolerance=1e-5)


@backends
def test_on_the_node_of_an_argument(backend: str) -> None:
    def program(y: Any) -> Any:
        z = y.sin()
        handle = y.grad_fn.register_hook(lambda into, out: (into[0] * 3, *into[1:]))
        return z * y, handle

    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for size in (3, 3, 5, 7):
        found = []
        for function in (program, compiled):
            x = torch.linspace(0, 1, size, requires_grad=True)
            y = x * 2
            z, handle = function(y)
            z.sum().backward(retain_graph=True)
            handle.remove()
            z.sum().backward()
            found.append(x.grad)
        torch.testing.assert_close(found[1], found[0])


@backends
@pytest.mark.parametrize("chosen", [0, 1])
def test_a_hook_is_not_called_for_other_results(chosen: int, backend: str) -> None:
    def program(x: Any) -> Any:
        y, z = x * 2, x * 3
        y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 10 + 1,))
        return y.sin(), z.cos()

    compiled = stator.compile(program, backend=backend)
    found = []
    for function in (program, compiled, compiled):
        x = torch.linspace(0, 1, 3, requires_grad=True)
        function(x)[chosen].sum().backward()
        found.append(x.grad)
    torch.testing.assert_close(found[1:], [found[0]] * 2)


@backends
def test_a_hook_that_raises(backend: str) -> None:
    def program(x: Any) -> Any:
        y = x * 2
        y.grad_fn.register_prehook(lambda gradients: gradients[0])
        return y.exp()

    alike(lambda: (program, []), backend=backend, tolerance=1e-5)
