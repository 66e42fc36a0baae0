"""A break is told at the line that it lies at, also where the trace is made again to break before it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import torch

import stator


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, scale: Any) -> Any:
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        if g.max() > 10:
            print("large")
        return g * ctx.scale, None


def line_in(function: Any, distance: int) -> str:
    return f"{function.__code__.co_filename}:{function.__code__.co_firstlineno + distance}"


def test_a_branch_in_a_backward_rule() -> None:
    def program(x: Any) -> Any:
        return Scaled.apply(x * 2, 0.5).sum()

    stator.reset()
    compiled = stator.compile(program, backend="eager")
    for n in (2, 3):
        ours, theirs = torch.ones(n, requires_grad=True), torch.ones(n, requires_grad=True)
        compiled(ours).backward()
        program(theirs).backward()
        assert torch.equal(ours.grad, theirs.grad)  # type: ignore[arg-type]
    assert {b.where for b in stator.stats().breaks if b.code == "SB0201"} == {line_in(Scaled.backward, 2)}
    with pytest.raises(stator.GraphBreakError, match=re.escape("if g.max() > 10:")):
        stator.compile(program, backend="eager", fullgraph=True)(torch.ones(4, requires_grad=True))


def test_a_branch_that_cannot_be_assumed() -> None:
    parameter = torch.nn.Parameter(torch.ones(3))

    def program(x: Any) -> Any:
        if not torch.isfinite(x).all():
            raise ValueError("not finite")
        with torch.no_grad():
            parameter.add_(x)
        return x * 2

    stator.reset()
    with pytest.raises(stator.GraphBreakError, match="cannot be undone") as caught:
        stator.compile(program, backend="eager", fullgraph=True)(torch.ones(3))
    assert caught.value.where == line_in(program, 1)
    assert torch.equal(parameter, torch.ones(3))
    stator.compile(program, backend="eager")(torch.ones(3))
    (told,) = stator.stats().breaks
    assert told.where == line_in(program, 1) and "is not assumed" in told.reason
    assert torch.equal(parameter, torch.full((3,), 2.0))
