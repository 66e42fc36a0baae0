"""torch's own code is not told that it is being compiled, but where docs/guide/is_compiling.md says so."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.modules.module as modules
from torch import nn

import stator
from tests.pytorch.programs import agree

X = torch.ones(2)
BACKENDS = ("eager", "aot_eager")
#: what is hooked and fails, and whether the hook fails
FAILURES = [(fails, hook_fails) for fails in (False, True) for hook_fails in (False, True)]


class Layer(nn.Module):
    def __init__(self, fails: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.fails = fails

    def forward(self, x: Any, *, scale: int = 1) -> Any:
        if self.fails:
            raise ValueError("the module fails")
        return x * self.weight * scale


class Handling(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        try:
            return self.inner(x, scale=3)
        except ValueError:
            return x - 1


def outcomes(make: Callable[[list[Any]], tuple[Any, list[Any]]], wrap: Callable[[Any], Any]) -> list[Any]:
    """What three calls give, raise, warn of and call."""
    seen: list[Any] = []
    model, handles = make(seen)
    compiled = wrap(model)
    try:
        for size in (2, 2, 4):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                try:
                    seen.append(compiled(torch.ones(size, 2)).tolist())
                except Exception as e:
                    seen.append((type(e), str(e)))
            seen.append([str(w.message) for w in caught])
    finally:
        for handle in handles:
            handle.remove()
    return seen


def alike(make: Callable[[list[Any]], tuple[Any, list[Any]]], backend: str) -> None:
    expected = outcomes(make, lambda model: model)
    assert outcomes(make, lambda model: stator.compile(model, backend=backend)) == expected


def hook(seen: list[Any], fails: bool) -> Callable[..., None]:
    def called(module: Any, *args: Any) -> None:
        seen.append((type(module).__name__, len(args), args[-1] is None))
        if fails:
            raise KeyError("the hook fails")

    return called


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("fails", "hook_fails"), FAILURES)
@pytest.mark.parametrize("options", [{}, {"with_kwargs": True}, {"prepend": True}], ids=str)
def test_hooks_that_are_always_called(options: Any, fails: bool, hook_fails: bool, backend: str) -> None:
    def make(seen: list[Any]) -> tuple[Any, list[Any]]:
        inner = Layer(fails)
        inner.register_forward_hook(hook(seen, False))
        return Handling(inner), [inner.register_forward_hook(hook(seen, hook_fails), always_call=True, **options)]

    alike(make, backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("fails", "hook_fails"), FAILURES)
def test_hooks_of_all_modules_that_are_always_called(fails: bool, hook_fails: bool, backend: str) -> None:
    def make(seen: list[Any]) -> tuple[Any, list[Any]]:
        called = hook(seen, hook_fails)
        model = nn.Sequential(nn.Identity(), Layer(fails))
        return model, [modules.register_module_forward_hook(called, always_call=True)]

    alike(make, backend)


def test_a_hook_runs_after_a_graph_break_in_the_module_that_fails() -> None:
    class Broken(nn.Module):
        def forward(self, x: Any) -> Any:
            y = x * 2
            stator.graph_break()
            raise ValueError(str(y.shape))

    def make(seen: list[Any]) -> tuple[Any, list[Any]]:
        model = Broken()
        return Handling(nn.Sequential(model)), [model.register_forward_hook(hook(seen, False), always_call=True)]

    alike(make, "eager")


def test_the_program_is_told() -> None:
    def program(x: Any) -> Any:
        told = torch.compiler.is_compiling(), torch.compiler.is_dynamo_compiling(), torch._utils.is_compiling()
        return x * 2, told, [ask() for ask in (torch.compiler.is_compiling,)]

    assert stator.compile(program, backend="eager", fullgraph=True)(X)[1:] == ((True, True, True), [True])


def test_an_encoder_that_is_given_padding_takes_its_fast_path() -> None:
    # Eager gives zeros for what is padded.
    def make() -> Any:
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        model = nn.TransformerEncoder(layer, 2).eval()
        padding = torch.tensor([[False, False, True], [False, True, True]])

        def program(x: Any) -> Any:
            with torch.no_grad():
                return model(x, src_key_padding_mask=padding) + 1

        return program, (torch.randn(2, 3, 4),)

    agree(make, breaks=0, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_transforms_are_named_after_what_they_transform() -> None:
    def square(x: Any) -> Any:
        """Squares."""
        return x * x

    def program(x: Any) -> Any:
        made = torch.vmap(square)
        return made(x), made.__name__, made.__doc__

    agree(lambda: (program, (torch.ones(3),)), breaks=None)


def test_an_activation_budget_is_for_compiled_code() -> None:
    def program(x: Any) -> Any:
        with torch.autograd.graph.region_activation_memory_budget(0.5):
            return x * 2

    with pytest.raises(RuntimeError, match="can only be"):
        program(X)
    assert stator.compile(program, backend="eager")(X).tolist() == [2, 2]


@pytest.mark.parametrize("optimizer", [torch.optim.Adam, torch.optim.SGD, torch.optim.Adagrad])
def test_optimizers_stay_in_one_graph(optimizer: Any) -> None:
    def make() -> Any:
        model = nn.Linear(2, 2)
        optimiser = optimizer(model.parameters(), lr=0.1)

        def program(x: Any) -> Any:
            for p in model.parameters():
                p.grad = torch.ones_like(p)
            optimiser.step()
            return [p.detach().clone() for p in model.parameters()]

        return program, (X,)

    agree(make, breaks=None, rtol=1e-4)
