"""What is checked on each rank at the same time."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.distributed as dist

import stator
from tests.pytorch.distributed import pipelines, training
from tests.pytorch.distributed.programs import BETWEEN_TWO, FUNCTIONAL, IN_PLACE, LEFT_BY_NAME, PROGRAMS

SIZES = (4, 6, 10)

stator.config.check_ir = True


def _input(rows: int) -> torch.Tensor:
    torch.manual_seed(10 * rows + dist.get_rank())
    return torch.randn(rows, 3)


def _tensors(result: Any) -> list[torch.Tensor]:
    return list(result) if isinstance(result, tuple) else [result]


def _run(function: Any, x: torch.Tensor, gradients: bool, varying: bool = False) -> list[Any]:
    """All that a call shows: its results, the tensor it was given, and the gradients."""
    x = x.clone().requires_grad_(gradients)
    if varying:
        stator.mark_dynamic(x, 0)
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


def captured(name: str, *backends: str) -> None:
    """One graph, and what eager execution gives, forward and backward.

    Inductor, whose kernels take long to compile, gets the graph for any number of rows only.
    """
    program = PROGRAMS[name]
    differentiable = name in {**IN_PLACE, **BETWEEN_TWO, **FUNCTIONAL}
    for gradients in (False, True) if differentiable else (False,):
        expected = [_run(program, _input(rows), gradients) for rows in SIZES]
        # AOTAutograd makes other graphs without gradients; elsewhere the pass with them is the longer one.
        for backend in [each for each in backends if gradients or not differentiable or each == "aot_eager"]:
            stator.reset()
            compiled = stator.compile(program, backend=backend, fullgraph=True)
            for rows, wanted in zip(SIZES, expected, strict=True):
                _same(_run(compiled, _input(rows), gradients, varying=backend == "inductor"), wanted)


def left(name: str, *backends: str) -> None:
    """What eager execution gives, with a break that says why; also where the other rank does not compile."""
    program, why = LEFT_BY_NAME[name]
    expected = [_run(program, _input(rows), True) for rows in SIZES]
    for backend in backends:
        for alone in (False, True):
            stator.reset()
            plain = alone and dist.get_rank() == 0
            compiled = program if plain else stator.compile(program, backend=backend)
            for rows, wanted in zip(SIZES, expected, strict=True):
                _same(_run(compiled, _input(rows), True), wanted)
            if name != "a_message_of_anyone" or dist.get_rank() == 0:
                assert plain or any(why in found.reason for found in stator.stats().breaks), stator.stats().breaks


def mixed(name: str) -> None:
    """A rank that runs the graph meets one that runs as ordinary Python."""
    program = PROGRAMS[name]
    stator.reset()
    x = _input(4)
    function = stator.compile(program, backend="aot_eager") if dist.get_rank() else program
    _same(_run(function, x, False), _run(program, x, False))


def data_parallel() -> None:
    """Ordinary Python around the module, which is one graph for itself; gradients are those of all ranks."""
    gradients = []
    for backend in (None, "eager", "aot_eager"):
        torch.manual_seed(0)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 2))
        stator.reset()
        function = model if backend is None else stator.compile(model, backend=backend)
        for rows in SIZES:
            function(_input(rows)).sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters()])
        assert backend is None or not stator.stats().breaks and stator.stats().graphs == 2
    for found in gradients[1:]:
        _same(found, gradients[0])


def trained(way: str, *backends: str) -> None:
    """Losses and gradients are those of eager execution, and so many graphs and breaks."""
    losses, gradients = training.train(way, lambda module: module)
    for backend in backends:
        stator.reset()
        made = training.train(way, lambda module: stator.compile(module, backend=backend))  # noqa: B023
        torch.testing.assert_close(made[0], losses, rtol=1e-5, atol=1e-5)
        assert made[1].keys() == gradients.keys()
        for name, gradient in gradients.items():
            torch.testing.assert_close(made[1][name], gradient, rtol=1e-5, atol=1e-5, msg=f"{backend}: {name}")
        found = stator.stats()
        assert 0 < found.graphs <= training.LIMITS[way][0]
        assert sum(record.count for record in found.breaks) <= training.LIMITS[way][1]
        assert {record.code for record in found.breaks} <= {"SB0211"}


def around(way: str) -> None:
    """What is done around a compiled module leaves it whole, and is none of its compilations."""
    stator.reset()
    model = training.WAYS[way](partial(stator.compile, fullgraph=True, backend="eager"))
    with stator.config.patch(error_on_recompile=True):
        for _ in range(2):
            model(torch.zeros(2, 8, dtype=torch.int64)).sum().backward()
    assert stator.stats().graphs == 1 and not stator.stats().breaks


def pipelined(schedule: str, *backends: str) -> None:
    """Stages that are compiled train as others do, each in one graph."""
    expected = pipelines.train(schedule, lambda module: module)
    for backend in backends:
        stator.reset()
        _same(pipelines.train(schedule, partial(stator.compile, backend=backend, fullgraph=True)), expected)  # noqa: B023
        # A rank's two stages have one graph, or two where autograd does not follow the input of the first.
        assert 1 <= stator.stats().graphs <= len(pipelines.SCHEDULES[schedule][0])


def pipelined_twice(schedule: str, *backends: str) -> None:
    """Gradients of inputs come before those of weights: what a backward graph needs is kept."""
    with torch._functorch.config.patch(donated_buffer=False):
        pipelined(schedule, *backends)
