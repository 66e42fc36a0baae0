"""Inference mode that spans a graph break ends without another one where the function only returns after it."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stator
from tests.pytorch.training import BACKENDS


@torch.inference_mode()
def decorated(x: Any) -> Any:
    y = x.sin()
    stator.graph_break()
    return y.cos()


def block(x: Any) -> Any:
    with torch.inference_mode():
        y = x.sin()
        stator.graph_break()
        y = y.cos()
    return y


def calling(x: Any) -> Any:
    return decorated(x)


class Layer(torch.nn.Module):
    @torch.inference_mode()
    def forward(self, x: Any) -> Any:
        y = x.sin()
        stator.graph_break()
        return y.cos()


def twice(x: Any) -> Any:
    with torch.inference_mode(), torch.inference_mode():
        y = x.sin()
        stator.graph_break()
        return y.cos()


def switched_off(x: Any) -> Any:
    with torch.inference_mode(False):
        y = x.sin()
        stator.graph_break()
        return y.cos()


def more_after(x: Any) -> Any:
    return decorated(x) + 1, torch.is_inference_mode_enabled(), torch.is_grad_enabled()


def asking(x: Any) -> Any:
    with torch.inference_mode():
        y = x.sin()
        stator.graph_break()
        y = y.cos()
    return y, torch.is_inference_mode_enabled()


#: programs, and how often they break at the first call
PROGRAMS = {decorated: 1, block: 1, calling: 1, Layer(): 1, twice: 2, switched_off: 1, more_after: 2, asking: 2}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("program", PROGRAMS)
def test_inference_mode_ends_with_the_function(program: Any, grad: bool, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for size in (3, 3, 5):
        outcomes = []
        for run in (program, compiled):
            with torch.set_grad_enabled(grad):
                result = run(torch.linspace(-1, 1, size))
                state = torch.is_inference_mode_enabled(), torch.is_grad_enabled()
            y, *rest = result if isinstance(result, tuple) else (result,)
            outcomes.append((y.tolist(), rest, state, y.is_inference() if backend == "eager" else None))
        assert outcomes[0] == outcomes[1]
        if size == 3:
            assert stator.stats().graph_breaks == PROGRAMS[program]


@pytest.mark.parametrize("backend", BACKENDS)
def test_inference_mode_ends_where_an_error_leaves_it(backend: str) -> None:
    @torch.inference_mode()
    def program(x: Any) -> Any:
        y = x.sin()
        stator.graph_break()
        raise ValueError(y.shape)

    compiled = stator.compile(program, backend=backend)
    for _ in range(3):
        with pytest.raises(ValueError, match="3"):
            compiled(torch.ones(3))
        assert not torch.is_inference_mode_enabled()


def test_the_end_of_a_block_in_inference_mode_is_told_as_such() -> None:
    def program(x: Any) -> Any:
        with torch.inference_mode():
            y = x * 2
            if y.sum() > 0:
                y = y + 1
        return x + 1

    stator.reset()
    assert torch.equal(stator.compile(program, backend="eager")(torch.ones(3)), torch.full((3,), 2.0))
    _, end = stator.stats().breaks
    assert end.reason.startswith("the end of torch.inference_mode cannot be captured: a graph break in the block")
