"""Checkpoints whose functions communicate: what is sent, and what comes of it, where one rank runs ordinary Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.nn.functional as F
from torch.distributed.tensor import init_device_mesh
from torch.distributed.tensor.parallel import parallelize_module
from torch.utils.checkpoint import checkpoint

import stator
from tests.pytorch.distributed.tensors import PLAN, SEQUENCE_PLAN, Block

Function = Callable[[Any], Any]

WEIGHTS = [torch.randn(3, 3, generator=torch.Generator().manual_seed(seed)).requires_grad_() for seed in (1, 2)]


def in_place(x: Any) -> Any:
    y = x @ WEIGHTS[0]
    dist.all_reduce(y)
    return (y * WEIGHTS[1][0]).sin()


def asynchronous(x: Any) -> Any:
    y = x @ WEIGHTS[0]
    work: Any = dist.all_reduce(y, async_op=True)
    z = (x @ WEIGHTS[1]).sin()
    work.wait()
    return (y * z).sin()


def functional_one(x: Any) -> Any:
    y = functional.all_reduce((x @ WEIGHTS[0]).sin(), "sum", dist.group.WORLD)
    return (y @ WEIGHTS[1]).sin() + 1


def at_its_end(x: Any) -> Any:
    """Nothing that is saved comes after it: it is sent once."""
    y = (x @ WEIGHTS[0]).sin() @ WEIGHTS[1]
    z = y.detach() * 1
    dist.all_reduce(z)
    return y + z


def of_its_result(x: Any) -> Any:
    """What is saved last is the result itself, which a backend keeps: it need not compute it again."""
    return functional.all_reduce(x @ WEIGHTS[0], "sum", dist.group.WORLD).tanh()


def kept(x: Any) -> Any:
    """What is saved last is a result, which a backend keeps."""
    y = functional.all_reduce(x @ WEIGHTS[0], "sum", dist.group.WORLD)
    return y, y.sin()


def unread(x: Any) -> Any:
    """Nothing that is saved is computed of it: it is sent twice all the same."""
    y = (x @ WEIGHTS[0]).sin()
    z = y.detach() * 1
    dist.all_reduce(z)
    return (y @ WEIGHTS[1]).sin() + 0 * z


def two_apart(x: Any) -> Any:
    """In the backward pass the second one is needed first."""
    a = functional.all_reduce((x @ WEIGHTS[0]).sin(), "sum", dist.group.WORLD)
    b = functional.all_reduce((x @ WEIGHTS[1]).cos(), "sum", dist.group.WORLD)
    return (a * a) + (b * b).sin()


def nested(x: Any) -> Any:
    x = checkpoint(in_place, x, use_reentrant=False)
    return checkpoint(functional_one, x, use_reentrant=False).sin()


def drawing(x: Any) -> Any:
    y = F.dropout(x @ WEIGHTS[0], 0.5)
    dist.all_reduce(y)
    return (y * WEIGHTS[1][0]).sin()


def drawing_last(x: Any) -> Any:
    return F.dropout(drawing(x), 0.5)


def between(x: Any) -> Any:
    """What is made of the result communicates as well, and another part of it is needed before that."""
    z = checkpoint(functional_one, x, use_reentrant=False)
    a = functional.all_reduce(z * 2, "sum", dist.group.WORLD)
    return (a + z.sin()).sum()


class Reduced(torch.autograd.Function):
    """What is sent in a forward pass, as libraries for tensor parallelism write it."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.clone()
        dist.all_reduce(y)
        return y

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient


class Copied(torch.autograd.Function):
    """What is sent in a backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        made = gradient.clone()
        dist.all_reduce(made)
        return made


def functions(x: Any) -> Any:
    """The first is sent twice, the second is behind all that is saved."""
    y = (Reduced.apply((x @ WEIGHTS[0]).sin()) @ WEIGHTS[1]).sin()
    return y + Reduced.apply(Copied.apply(y).cos() @ WEIGHTS[1])


def equal(x: Any) -> Any:
    """A backend would compute equal operations once."""
    y = x @ WEIGHTS[0]
    a, b = (functional.all_reduce(y, "sum", dist.group.WORLD) for _ in range(2))
    return (a.sin() * b.cos()) @ WEIGHTS[1]


def what_is_saved_at_its_end(x: Any) -> Any:
    """The graph cannot be cut before what is sent: it writes to what was made before."""
    y = (x @ WEIGHTS[0]).sin() @ WEIGHTS[1]
    z = y.detach() * 1
    y = y.sin()
    dist.all_reduce(z)
    return y + z


def nested_at_its_end(x: Any) -> Any:
    """The checkpoint around it counts nothing of what the one inside saves."""
    return checkpoint(functional_one, x.sin(), use_reentrant=False) + 1


def _twice(function: Function, **options: Any) -> Function:
    options = {"use_reentrant": False} | options

    def f(x: Any) -> Any:
        x = checkpoint(function, x, **options)
        return checkpoint(function, x, **options).sin().sum()

    return f


def _step(x: Any) -> Any:
    """The backward pass is in the compiled function."""
    loss = _twice(in_place)(x)
    loss.backward()
    return loss.detach()


def _parallel(plan: Any) -> Function:
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (2,))
    blocks = [parallelize_module(Block(), mesh, plan) for _ in range(2)]

    def f(x: Any) -> Any:
        x = F.pad(x.view(1, *x.shape), (0, 5))
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x.sin().sum()

    return f


#: makes a program: how many breaks it has with a backend that runs operations as recorded, and with one that traces the
#: backward pass
PROGRAMS: dict[str, tuple[Callable[[], Function], int, int]] = {
    "in_place": (lambda: _twice(in_place), 0, 0),
    "asynchronous": (lambda: _twice(asynchronous), 0, 0),
    "functional": (lambda: _twice(functional_one), 0, 0),
    "at_its_end": (lambda: _twice(at_its_end), 0, 0),
    "to_the_end": (lambda: _twice(at_its_end, early_stop=False), 0, 2),
    "of_its_result": (lambda: _twice(of_its_result), 0, 2),
    "kept": (lambda: lambda x: sum(checkpoint(kept, x, use_reentrant=False)).sum(), 0, 1),
    "unread": (lambda: _twice(unread), 0, 2),
    "two_apart": (lambda: _twice(two_apart), 0, 2),
    "nested": (lambda: _twice(nested), 0, 2),
    "drawing": (lambda: _twice(drawing), 0, 0),
    "drawing_last": (lambda: _twice(drawing_last), 0, 2),
    "between": (lambda: between, 0, 0),
    "functions": (lambda: _twice(functions), 0, 0),
    "reentrant": (lambda: _twice(in_place, use_reentrant=True), 2, 2),
    "step": (lambda: _step, 0, 0),
    "tensor_parallel": (lambda: _parallel(PLAN), 0, 0),
    "sequence_parallel": (lambda: _parallel(SEQUENCE_PLAN), 0, 0),
}


#: functions that are compiled for themselves, in checkpoints of ordinary Python
COMPILED: dict[str, Function] = {
    f.__name__: f for f in (in_place, equal, at_its_end, what_is_saved_at_its_end, functions, nested, nested_at_its_end)
}


def _run(function: Function, same: bool, sizes: tuple[int, ...]) -> list[Any]:
    """Results and gradients of calls; the input is the rank's own, or the same on all."""
    found = []
    for rows in sizes:
        torch.manual_seed(rows if same else 10 * rows + dist.get_rank())
        x = torch.randn(rows, 3, requires_grad=True)
        for weight in WEIGHTS:
            weight.grad = None
        made = function(x)
        if made.requires_grad:
            made.backward()
        found += [made.detach(), x.grad, *(weight.grad for weight in WEIGHTS)]
    return found


def _sizes(backend: str) -> tuple[int, ...]:
    """How many rows there are in each call; Inductor, whose kernels take long to compile, gets one graph."""
    return (4, 4, 4) if backend == "inductor" else (4, 6, 8)


def sent_again(name: str, backend: str, alone: bool) -> None:
    """Results and gradients of eager execution, where all ranks compile and where one alone does."""
    make, in_order, traced = PROGRAMS[name]
    allowed = in_order if backend == "eager" else traced
    program, same = make(), name.endswith("parallel")
    sizes = (4, 4, 4) if same else _sizes(backend)
    expected = _run(program, same, sizes)
    stator.reset()
    if alone and dist.get_rank() == 0:
        made = _run(program, same, sizes)
    else:
        made = _run(stator.compile(program, backend=backend), same, sizes)
        found = sum(record.count for record in stator.stats().breaks)
        assert found <= 2 * allowed, stator.stats().breaks
        assert bool(found) == bool(allowed)
    for one, other in zip(made, expected, strict=True):
        torch.testing.assert_close(one, other)


def sent_again_around(name: str, backend: str, alone: bool) -> None:
    """The same, where the checkpoints are around what is compiled."""
    function, sizes = COMPILED[name], _sizes(backend)
    expected = _run(_twice(function), False, sizes)
    for options in ({}, {"early_stop": False}):
        stator.reset()
        plain = alone and dist.get_rank() == 0
        compiled = function if plain else stator.compile(function, backend=backend, fullgraph=True)
        for one, other in zip(_run(_twice(compiled, **options), False, sizes), expected, strict=True):
            torch.testing.assert_close(one, other)
