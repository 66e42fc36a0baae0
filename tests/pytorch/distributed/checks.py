"""What is checked on each rank at the same time."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

import stator
from tests.pytorch.distributed.programs import FUNCTIONAL, IN_PLACE, PROGRAMS

SIZES = (4, 6, 8)

stator.config.check_ir = True


def _input(rows: int) -> torch.Tensor:
    torch.manual_seed(10 * rows + dist.get_rank())
    return torch.randn(rows, 3)


def _tensors(result: Any) -> list[torch.Tensor]:
    return list(result) if isinstance(result, tuple) else [result]


def _run(function: Any, x: torch.Tensor, gradients: bool) -> list[Any]:
    """All that a call shows: its results, the tensor it was given, and the gradients."""
    x = x.clone().requires_grad_(gradients)
    made = _tensors(function(x))
    weighted = [tensor * torch.arange(float(tensor.numel())).view(tensor.shape) for tensor in made]
    if gradients:
        sum(tensor.sum() for tensor in weighted).backward()  # type: ignore[union-attr]
    return [*(tensor.detach().clone() for tensor in made), x.detach().clone(), x._version, x.grad]


def _same(got: list[Any], expected: list[Any]) -> None:
    assert len(got) == len(expected)
    for one, other in zip(got, expected, strict=True):
        if isinstance(other, torch.Tensor):
            torch.testing.assert_close(one, other)
        else:
            assert one == other


def captured(name: str, backend: str) -> None:
    """One graph, and what eager execution gives, forward and backward."""
    program = PROGRAMS[name]
    for gradients in (False, True) if name in IN_PLACE or name in FUNCTIONAL else (False,):
        stator.reset()
        compiled = stator.compile(program, backend=backend, fullgraph=True)
        for rows in SIZES:
            x = _input(rows)
            _same(_run(compiled, x, gradients), _run(program, x, gradients))


def mixed(name: str) -> None:
    """A rank that runs the graph meets one that runs as ordinary Python."""
    program = PROGRAMS[name]
    stator.reset()
    x = _input(4)
    function = stator.compile(program, backend="aot_eager") if dist.get_rank() else program
    _same(_run(function, x, False), _run(program, x, False))
