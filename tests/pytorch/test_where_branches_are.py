"""A break is told at the line that it lies at, also where the trace is made again to break before it."""

from __future__ import annotations

import re
import warnings
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
    parameter, total = torch.nn.Parameter(torch.ones(3)), torch.ones(3)

    def program(x: Any) -> Any:
        if not torch.isfinite(x).all():
            raise ValueError("not finite")
        total.add_(x * parameter)
        return x * 2

    stator.reset()
    line = line_in(program, 3).rpartition("/")[2]
    reason = f"Tensor.add_ at {line} writes a tensor whose history autograd keeps, which cannot be undone"
    with pytest.raises(stator.GraphBreakError) as caught:
        stator.compile(program, backend="eager", fullgraph=True)(torch.ones(3))
    assert re.search(reason, caught.value.reason)
    assert caught.value.hint.startswith("write `out = out.add(...)`, which is not in place; or make the check")
    assert caught.value.where == line_in(program, 1)
    assert torch.equal(total, torch.ones(3))
    stator.compile(program, backend="eager")(torch.ones(3))
    (told,) = stator.stats().breaks
    assert told.where == line_in(program, 1) and "is not assumed" in told.reason
    assert torch.equal(total, torch.full((3,), 2.0))


def test_what_came_before_a_branch_that_cannot_be_assumed() -> None:
    parameter, total = torch.nn.Parameter(torch.ones(3)), torch.ones(3)
    buffer = torch.ones(4)

    def program(x: Any) -> Any:
        total.add_(x * parameter)
        if not torch.isfinite(x).all():
            raise ValueError("not finite")
        return x * 2

    def large(x: Any) -> Any:
        buffer.add_(x)
        if not torch.isfinite(x).all():
            raise ValueError("not finite")
        return x * 2

    line = line_in(program, 1).rpartition("/")[2]
    with pytest.raises(stator.GraphBreakError) as caught:
        stator.compile(program, backend="eager", fullgraph=True)(torch.ones(3))
    assert f"Tensor.add_ at {line} writes a tensor whose history autograd keeps" in caught.value.reason
    with stator.config.patch(undo_limit=12), pytest.raises(stator.GraphBreakError) as caught:
        stator.compile(large, backend="eager", fullgraph=True)(torch.ones(4))
    assert "what the graph writes, 16 bytes, is more than is copied" in caught.value.reason
    assert torch.equal(total, torch.ones(3)) and torch.equal(buffer, torch.ones(4))


def test_a_branch_that_is_not_assumed_any_more() -> None:
    def program(x: Any) -> Any:
        if x.max() > 2:
            warnings.warn("large", stacklevel=1)
        return x * 2

    stator.reset()
    compiled = stator.compile(program, backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(6):
            assert torch.equal(compiled(torch.full((3,), 3.0)), torch.full((3,), 6.0))
    (told,) = stator.stats().breaks
    assert "is not assumed: it has gone the other way too often" in told.reason
