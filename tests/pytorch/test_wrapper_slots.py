"""Wrappers that keep what they hold in `__slots__`."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

import stator
from tests.pytorch.programs import agree
from tests.pytorch.training import BACKENDS


class Scaled(torch.Tensor):
    """A tensor and a number, which is 1 more after each operation."""

    __slots__ = ("held", "steps")

    @staticmethod
    def __new__(cls, held: Any, steps: int) -> Any:
        return torch.Tensor._make_wrapper_subclass(
            cls, held.shape, dtype=held.dtype, device=held.device, requires_grad=held.requires_grad
        )

    def __init__(self, held: Any, steps: int) -> None:
        self.held = held
        self.steps = steps

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Scaled({self.held!r}, {self.steps})"

    def __tensor_flatten__(self) -> Any:
        return ["held"], self.steps

    @staticmethod
    def __tensor_unflatten__(inner: Any, steps: Any, size: Any, stride: Any) -> Any:
        return Scaled(inner["held"], steps)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        steps = max(x.steps for x in pytree.tree_leaves(args) if isinstance(x, Scaled))
        plain = pytree.tree_map(lambda x: x.held if isinstance(x, Scaled) else x, (args, kwargs or {}))
        out = func(*plain[0], **plain[1])
        if steps > 3:
            out = pytree.tree_map(lambda x: x + 100, out)
        return pytree.tree_map(lambda x: Scaled(x, steps + 1), out)


class Named(Scaled):
    """A slot of its own, and one that is never set."""

    __slots__ = ("name", "never")

    def __init__(self, held: Any, steps: int) -> None:
        super().__init__(held, steps)
        self.name = "named"


def used(x: Any) -> Any:
    return (Scaled(x, 3) * 2).held + 1


def chained(x: Any) -> Any:
    made = Scaled(x.sin(), 1)
    product = made * made + 1
    return product.held * product.steps, (product * 2).held, (product * 2 * 2).held


def read(x: Any) -> Any:
    named = Named(x * 2, 3)
    named.steps += 1
    return named.held * named.steps, named.name, hasattr(named, "never"), hasattr(named, "held")


def deleted(x: Any) -> Any:
    named = Named(x, 3)
    named.never = 2
    del named.never
    named.more = 5
    return (named * 2).held, hasattr(named, "never"), named.more


def told_apart(x: Any) -> Any:
    """Only the number differs between the two calls of `__torch_dispatch__`."""
    return (Scaled(x, 1) * 2).held, (Scaled(x, 7) * 2).held


PROGRAMS = [used, chained, read, deleted, told_apart]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [3, 5])
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("program", PROGRAMS)
def test_made_inside(program: Any, grad: bool, size: int, backend: str) -> None:
    if grad and program not in (read, deleted):
        grad = False  # autograd knows nothing of what is inside of a wrapper
    agree(lambda: (program, (torch.linspace(-1, 1, size, requires_grad=grad),)), grad=grad, backend=backend)


def test_made_inside_under_inductor() -> None:
    agree(lambda: (chained, (torch.linspace(-1, 1, 4),)), backend="inductor", rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_given_and_returned(backend: str) -> None:
    def run(wrapper: Any, x: Any) -> Any:
        return wrapper * 2 + x, Named(x * 3, wrapper.steps), wrapper.held * wrapper.steps

    compiled = stator.compile(run, backend=backend, fullgraph=True)
    for size, steps in ((3, 1), (3, 1), (5, 1), (5, 2)):
        wrapper, x = Scaled(torch.ones(size), steps), torch.linspace(-1, 1, size)
        (a, named, b), (c, expected, d) = compiled(wrapper, x), run(wrapper, x)
        assert type(a) is type(c) is Scaled and a.steps == c.steps
        torch.testing.assert_close((a.held, b, named.held), (c.held, d, expected.held))
        assert type(named) is Named and (named.steps, named.name) == (steps, "named")
        assert not hasattr(named, "never")


@pytest.mark.parametrize("backend", BACKENDS)
def test_set_when_the_graph_has_one_already(backend: str) -> None:
    """What the graph has made of it would not be changed: that breaks."""

    def run(x: Any) -> Any:
        made = Scaled(x, 1)
        first = (made * 2).held
        made.held = x + 5
        return first, (made * 2).held

    compiled = stator.compile(run, backend=backend)
    for size in (3, 3, 5):
        x = torch.linspace(-1, 1, size)
        torch.testing.assert_close(compiled(x), run(x))
    assert stator.stats().graph_breaks
