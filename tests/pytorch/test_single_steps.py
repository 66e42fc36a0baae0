"""Functions of torch that are one step to the program: where they break, they break once, at the program's call."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import nn

import stator
from tests.pytorch.programs import agree

BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager"])


def leaf(rows: int) -> Any:
    return torch.randn(rows, 3, requires_grad=True)


def net() -> Any:
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))


@BACKENDS
@pytest.mark.parametrize("rows", [2, 4, 7])
def test_a_conversion_of_many_parameters(backend: str, rows: int) -> None:
    def make() -> Any:
        model = net()

        def program(x: Any) -> Any:
            with torch.no_grad():
                y = model.double()(x.double())
            return y, model.float()(x), [p.dtype for p in model.parameters()]

        return program, (leaf(rows),)

    stats = agree(make, backend=backend, grad=True, breaks=None, calls=1)
    assert [b.reason.split(" meets")[0] for b in stats.breaks] == [
        "call of torch.nn.Module.double",
        "call of torch.nn.Module.float",
    ]


@BACKENDS
def test_a_conversion_that_changes_nothing_is_traced(backend: str) -> None:
    model = net()
    agree(lambda: (lambda x: model.to(torch.float32).cpu()(x), (leaf(3),)), backend=backend, grad=True)


@pytest.mark.parametrize("reset", [torch.compiler.reset, torch._dynamo.reset])
def test_a_reset_inside(reset: Any) -> None:
    def program(x: Any) -> Any:
        y = x + 1
        reset()
        return y * 2

    stats = agree(lambda: (program, (leaf(3),)), grad=True, breaks=None, calls=1)
    assert stats.graph_breaks <= 1  # the reset forgets the break too


@BACKENDS
@pytest.mark.parametrize("rows", [2, 4, 7])
def test_a_result_is_marked_dynamic(backend: str, rows: int) -> None:
    """torch could not heed such a mark, and refuses to trace the function that makes it: it writes attributes."""

    def program(x: Any) -> Any:
        y = x * 2
        torch._dynamo.mark_dynamic(y, 0)
        torch._dynamo.maybe_mark_dynamic(y, 1)
        return y, sorted(y._dynamo_dynamic_indices)

    agree(lambda: (program, (leaf(rows),)), backend=backend, grad=True)


def saved_and_loaded(x: Any) -> Any:
    file = io.BytesIO()
    torch.save({"x": x.detach()}, file)
    return x + torch.load(io.BytesIO(file.getvalue()))["x"]


def handed_over(x: Any) -> Any:
    return x + torch.from_dlpack(x.detach() * 2)


def checked(x: Any) -> Any:
    leaf = x.detach().double().requires_grad_()
    return x * torch.autograd.gradcheck(torch.sin, (leaf,))


def profiled(x: Any) -> Any:
    with torch.autograd.profiler.profile():
        y = x.sin()
    return y * 2


@BACKENDS
@pytest.mark.parametrize(("program", "breaks"), [(saved_and_loaded, 3), (handed_over, 1), (checked, 1), (profiled, 3)])
def test_what_many_frames_do(backend: str, program: Any, breaks: int) -> None:
    for rows in (2, 4, 7):
        stats = agree(lambda n=rows: (program, (leaf(n),)), backend=backend, grad=True, breaks=None, calls=1)
        assert stats.graph_breaks <= breaks, [(b.code, b.reason, b.where) for b in stats.breaks]


def test_what_the_program_forbids() -> None:
    @torch._dynamo.forbid_in_graph
    def never(x: Any) -> Any:
        return x + 1

    with pytest.raises(AssertionError, match="Attempt to trace forbidden callable <function .*never"):
        stator.compile(lambda x: never(x) * 2, backend="eager")(torch.ones(2))


def test_inductor() -> None:
    model = net()

    def program(x: Any) -> Any:
        with torch.no_grad():
            y = model.double()(x.double()).sum()
        return model.float()(x) * y.float()

    agree(lambda: (program, (leaf(3),)), backend="inductor", grad=True, breaks=None, calls=1, rtol=1e-5)
