"""Instances of an `autograd.Function`, and classes and objects that are marked as allowed in the graph."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd import Function

import stator
from tests.pytorch.programs import agree
from tests.pytorch.training import BACKENDS


class Scaled(Function):
    """Its gradient is not that of its forward, so that it shows whose was taken."""

    @staticmethod
    def forward(ctx: Any, x: Any, scale: float = 2) -> Any:
        ctx.save_for_backward(x)
        ctx.scale = scale
        return x * x * scale

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * x * 5 * ctx.scale, None


class Configured(Scaled):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale


class WithSlots(Scaled):
    __slots__ = ("scale",)

    def __init__(self) -> None:
        self.scale = 3


def kept(x: Any) -> Any:
    function = Scaled()
    return function.apply(x.sin()) + 1


def at_once(x: Any) -> Any:
    return Scaled().apply(x.sin()) + 1


def configured(x: Any) -> Any:
    function = Configured(3)
    function.more = 2
    return function.apply(x.sin(), function.scale) * function.more


def in_slots(x: Any) -> Any:
    function = WithSlots()
    return function.apply(x, function.scale)


def called(x: Any) -> Any:
    try:
        return Scaled()(x)
    except RuntimeError as e:
        return x * len(str(e))


def raising(x: Any) -> Any:
    return Scaled()(x.sin())


def told_apart(x: Any) -> Any:
    one, other = Configured(2), Configured(2)
    return one.apply(x) * (2 if one == other else 3), one is one, isinstance(one, Function)


def of_the_module(x: Any) -> Any:
    return existing.apply(x, existing.scale)


class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.function = Configured(2)

    def forward(self, x: Any) -> Any:
        self.function.last = self.function.scale
        return self.function.apply(x.sin(), self.function.scale)


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # torch: it should not be instantiated
    existing, holder = Configured(2), Holder()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [3, 5, 1])
@pytest.mark.parametrize(
    "program", [kept, at_once, configured, in_slots, called, raising, told_apart, of_the_module, holder]
)
def test_programs(program: Any, size: int, backend: str) -> None:
    agree(lambda: (program, (torch.randn(size, requires_grad=True),)), grad=program is not raising, backend=backend)


def test_with_inductor() -> None:
    agree(lambda: (configured, (torch.randn(5, requires_grad=True),)), grad=True, backend="inductor", rtol=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_instance_that_leaves_the_graph(backend: str) -> None:
    def run(x: Any) -> Any:
        function = Configured(3)
        function.more = [x * 2]
        return function

    x = torch.ones(3)
    with pytest.warns(DeprecationWarning, match="Configured"):
        made = stator.compile(run, backend=backend, fullgraph=True)(x)
    assert type(made) is Configured
    assert made.scale == 3
    assert torch.equal(made.more[0], x * 2)
    assert torch.equal(made.apply(x), x * x * 2)


def broken(x: Any) -> Any:
    function = Configured(3)
    stator.graph_break()
    return function.apply(x, function.scale)


def filled(x: Any) -> Any:
    function = Scaled()
    function.save_for_backward(x)
    return x.sin(), function.saved_tensors


class Ending(Scaled):
    def __del__(self) -> None:
        pass


@pytest.mark.parametrize("program", [broken, filled, lambda x: Ending().apply(x)])
def test_what_breaks(program: Any) -> None:
    """What C code keeps in an instance, and when one ends, is not traced."""
    make = lambda: (program, (torch.randn(3, requires_grad=True),))  # noqa: E731
    stats = agree(make, breaks=None, grad=program is not filled)
    assert stats.breaks[0].code in ("SB0301", "SB0109", "SB0123")


@dataclass(frozen=True)
class Shift:
    by: int

    def __call__(self, x: Any) -> Any:
        return x.sin() + self.by


class ShiftWithSlots:
    __slots__ = ("by",)

    def __init__(self, by: int) -> None:
        self.by = by

    def __call__(self, x: Any) -> Any:
        return x.sin() + self.by


@dataclass(frozen=True)
class Pair:
    x: Any
    y: Any


#: torch's keeps weakly what is marked
MARKS = [
    (stator.allow_in_graph, Shift(3)),
    (stator.allow_in_graph, ShiftWithSlots(3)),
    (torch.compiler.allow_in_graph, Shift(3)),
]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("mark", "shift"), MARKS)
def test_marked_objects(shift: Any, mark: Any, backend: str) -> None:
    marked = mark(shift)
    assert marked is shift
    agree(lambda: (lambda x: marked(x) * 2, (torch.randn(3, requires_grad=True),)), grad=True, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mark", [stator.allow_in_graph, torch.compiler.allow_in_graph])
def test_marked_classes(mark: Any, backend: str) -> None:
    pair, function = mark(Pair), mark(type("Marked", (Scaled,), {}))

    def run(x: Any) -> Any:
        both = pair(x.sin(), function.apply(x))
        return both.x * both.y, both == pair(both.x, both.y)

    def make() -> Any:
        return (lambda x: run(x)[0], (torch.randn(1, requires_grad=True),))

    agree(make, grad=True, backend=backend)
