"""Hooks on tensors that are saved for backward, set inside of the compiled function and around its calls."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks

import stator
from tests.pytorch.training import BACKENDS


def on_cpu(x: Any) -> Any:
    with save_on_cpu():
        return (x.sin() * x).exp()


def bound(x: Any) -> Any:
    with saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        y = (x.sin() * x).exp()
    return y


def inside(x: Any) -> Any:
    return on_cpu(x)


def more_after(x: Any) -> Any:
    with saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        y = (x.sin() * x).exp()
    return y.tanh() * x


def counted(x: Any) -> Any:
    seen: list[Any] = []

    def pack(t: Any) -> Any:
        seen.append(tuple(t.shape))
        return t

    with saved_tensors_hooks(pack, lambda t: t):
        y = (x.sin() * x).exp()
    return y, len(seen), seen


def rounded(x: Any) -> Any:
    with saved_tensors_hooks(lambda t: t.to(torch.bfloat16), lambda t: t.float()):
        return (x * 2).sin() * x.exp()


def rounded_in_places(x: Any) -> Any:
    first = called(computed, x)
    with saved_tensors_hooks(lambda t: t.to(torch.bfloat16), lambda t: t.float()):
        return first * called(computed, x)


@stator.disable(recursive=False)
def called(function: Any, x: Any) -> Any:
    return function(x)


def computed(x: Any) -> Any:
    """A frame of its own, without hooks and with them."""
    return (x * 2).sin() * x.exp()


def nested(x: Any) -> Any:
    with saved_tensors_hooks(lambda t: t + 1, lambda t: t - 1), saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        return (x.sin() * x).exp()


def raising(x: Any) -> Any:
    try:
        with saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
            y = x.exp()
            raise KeyError
    except KeyError:
        return y * x


class Layer(nn.Module):
    def forward(self, x: Any) -> Any:
        with save_on_cpu():
            return x.exp() * x


def between(x: Any) -> Any:
    y = x.sin() * x
    with save_on_cpu(pin_memory=True):
        y = (y * y.shape[0]).exp()
        z, w = y.chunk(2)
    return z.sum() * x.exp() + w.mean()


ON_CPU = save_on_cpu()


def made_outside(x: Any) -> Any:
    with ON_CPU:
        y = x.exp() * x
    return y.exp()


def one_in_another(x: Any) -> Any:
    with save_on_cpu():
        y = x.exp() * x
        with save_on_cpu(pin_memory=True):
            y = y.exp()
        return y.sin() * y


def written_in_it(x: Any) -> Any:
    y = x * 2
    with save_on_cpu():
        z = y.exp()
        y.mul_(3)
    y.add_(1)
    return y * z


def without_gradients(x: Any) -> Any:
    with save_on_cpu():
        with torch.no_grad():
            y = x.exp()
            n = y.shape[0] * 2
        z = y * x * n
    with torch.no_grad(), save_on_cpu():
        w = x.sin()
    return z * w


def left_by_an_exception(x: Any) -> Any:
    try:
        with save_on_cpu():
            y = x.exp()
            raise KeyError
    except KeyError:
        return y * x


def differentiated_inside(x: Any) -> Any:
    with save_on_cpu():
        y = x.exp() * x
        (g,) = torch.autograd.grad(y.sum(), x)
    return g * x


def of_no_tensors(x: Any) -> Any:
    with save_on_cpu():
        n = x.shape[0] + 2
    return x.exp() * n


def breaking_inside(x: Any) -> Any:
    with save_on_cpu():
        y = x.exp()
        stator.graph_break()
        return y * x


#: programs, and how often they break the graph at most
PROGRAMS = {
    on_cpu: 0,
    bound: 1,
    inside: 0,
    more_after: 2,
    rounded: 1,
    rounded_in_places: 4,
    nested: 3,
    raising: 2,
    Layer(): 0,
    between: 0,
    made_outside: 0,
    one_in_another: 0,
    written_in_it: 0,
    without_gradients: 0,
    left_by_an_exception: 0,
    differentiated_inside: 3,
    of_no_tensors: 0,
    breaking_inside: 2,
}


def active() -> Any:
    return torch._C._autograd._top_saved_tensors_default_hooks(True)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_hooks_set_inside(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for size in (4, 4, 6, 8):
        outcomes = []
        for run in (program, compiled):
            x = torch.linspace(-1, 1, size).requires_grad_()
            out = run(x)
            assert active() is None
            out.sum().backward()
            outcomes.append((out.detach(), x.grad))
        torch.testing.assert_close(*outcomes)
        if size == 4:
            assert stator.stats().graph_breaks <= PROGRAMS[program]


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_saved_in_the_block_is_copied(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    copied: list[tuple[int, ...]] = []
    empty = torch.empty

    def counted_empty(*args: Any, **kwargs: Any) -> Any:
        copied.append(tuple(args[0]))
        return empty(*args, **kwargs)

    compiled = stator.compile(between, backend=backend, fullgraph=True)
    x = torch.linspace(-1, 1, 4).requires_grad_()
    compiled(x)
    monkeypatch.setattr(torch, "empty", counted_empty)
    compiled(x)
    assert copied
    assert set(copied) == {(4,)}


def failing(x: Any, index: Any) -> Any:
    with save_on_cpu():
        y = x.exp()[index]
    return y


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_error_in_the_block_ends_the_hooks(backend: str) -> None:
    compiled = stator.compile(failing, backend=backend, fullgraph=True)
    x = torch.linspace(-1, 1, 4).requires_grad_()
    torch.testing.assert_close(compiled(x, torch.tensor([1, 2])), failing(x, torch.tensor([1, 2])))
    for run in (failing, compiled):
        with pytest.raises((IndexError, RuntimeError), match="out of (range|bounds)"):
            run(x, torch.tensor([1, 7]))
        assert active() is None


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_transforms_refuse_to_run_in_the_block(backend: str) -> None:
    def transformed(x: Any) -> Any:
        with save_on_cpu():
            return torch.func.grad(torch.sin)(x)

    compiled = stator.compile(transformed, backend=backend)
    for run in (transformed, compiled):
        with pytest.raises(RuntimeError, match="saved tensor hooks"):
            run(torch.ones(()))
        assert active() is None


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_hooks_have_seen_is_known_after_them(backend: str) -> None:
    compiled = stator.compile(counted, backend=backend)
    for size in (3, 3, 5):
        x = torch.linspace(-1, 1, size).requires_grad_()
        assert compiled(x)[1:] == counted(x)[1:]


def round_to_bfloat16() -> Any:
    return saved_tensors_hooks(lambda t: t.to(torch.bfloat16), lambda t: t.float())


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("under_hooks_first", [False, True])
def test_hooks_around_a_call_see_what_the_program_saves(under_hooks_first: bool, backend: str) -> None:
    compiled = stator.compile(computed, backend=backend)
    for under_hooks in (under_hooks_first, not under_hooks_first, under_hooks_first):
        gradients = []
        for run in (computed, compiled):
            x = torch.linspace(-1, 1, 5).requires_grad_()
            with round_to_bfloat16() if under_hooks else contextlib.nullcontext():
                out = run(x)
            out.sum().backward()
            gradients.append(x.grad)
        torch.testing.assert_close(*gradients, rtol=0, atol=1e-6)
    assert stator.stats().graphs == (1 if backend == "eager" else 2)


def test_what_saves_nothing_has_no_guard_on_hooks() -> None:
    compiled = stator.compile(computed, backend="aot_eager")
    x = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        compiled(x)
        with round_to_bfloat16():
            compiled(x)
    assert stator.stats().graphs == 1
