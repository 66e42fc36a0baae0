"""Text of tensors that require a gradient: as eager execution shows them, whatever the backend makes of the graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import stator


def of_a_loss(x: torch.Tensor) -> Any:
    loss = x.pow(2).mean()
    print("loss", loss, f"{loss:.3f} {loss}")
    return loss * 2


def of_many_functions(x: torch.Tensor) -> Any:
    w = nn.functional.softmax(x @ x.T, -1)
    made = [x, x[0], x.view(-1)[:2], x.T, w, x.double() / 3, x.sum((0, 1)), F.layer_norm(x, (4,)), F.gelu(x), x.exp()]
    made += [
        F.scaled_dot_product_attention(*[x[None, None]] * 3),
        F.linear(x, x),
        *x.split(2, 1),
    ]
    made += [x.new_zeros(0, 4) * x[:0], x.to(torch.complex64), x.detach(), x.repeat(3, 9), torch.cat([x, x])]
    return [repr(each) for each in made], f"{x} {w}"


def of_what_is_written(x: torch.Tensor) -> Any:
    y = x * 1
    view = y[0]
    texts = [str(y)]
    view.mul_(2)
    texts += [str(y)]
    with torch.no_grad():
        texts += [str(y * 2), str(x)]
    return texts, y.sum()


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        return grad * 2


def of_a_function_of_its_own(x: torch.Tensor) -> Any:
    y: Any = Doubled.apply(x)
    print("made", y)
    return str(y), y + 1


PROGRAMS = [of_a_loss, of_many_functions, of_what_is_written, of_a_function_of_its_own]


def outcomes(function: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> list[Any]:
    found = []
    for rows in (2, 5, 3):
        x = (torch.arange(rows * 4.0).view(rows, 4) / 7).requires_grad_()
        result = function(x)
        torch.autograd.backward([t.sum() for t in torch.utils._pytree.tree_leaves(result) if hasattr(t, "backward")])
        found.append(result[0] if type(result) is tuple else None)
        found.append(None if x.grad is None else x.grad.tolist())
    return [*found, capsys.readouterr().out]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_that_of_eager_execution(
    program: Callable[..., Any], backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = outcomes(program, capsys)
    assert outcomes(stator.compile(program, backend=backend, fullgraph=True), capsys) == expected


def test_inductor_prints_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    expected = outcomes(of_a_loss, capsys)
    assert outcomes(stator.compile(of_a_loss, backend="inductor", fullgraph=True), capsys) == expected


def test_what_has_made_an_argument_is_looked_at_anew(capsys: pytest.CaptureFixture[str]) -> None:
    compiled = stator.compile(lambda x: print(x), backend="eager")
    leaf = torch.ones(2, requires_grad=True)
    for x in (leaf, leaf * 2, leaf.exp(), leaf):
        compiled(x)
        told = capsys.readouterr().out
        print(x)
        assert told == capsys.readouterr().out


def test_a_view_that_is_written_has_another_function(capsys: pytest.CaptureFixture[str]) -> None:
    def f(x: torch.Tensor) -> Any:
        y = x * 1
        view = y[0]
        view.mul_(2)
        return str(view), view.grad_fn.name(), y  # type: ignore[union-attr]

    x = torch.ones(2, 3, requires_grad=True)
    assert stator.compile(f, backend="eager")(x)[:2] == f(x)[:2]


@torch.compiler.nested_compile_region
def in_a_region(x: torch.Tensor) -> torch.Tensor:
    return x.sin() * 2


def of_a_checkpoint(x: torch.Tensor) -> torch.Tensor:
    return checkpoint(lambda y: y.sin() * 2, x, use_reentrant=True)  # type: ignore[no-any-return]


def of_sequences(x: torch.Tensor) -> torch.Tensor:
    return F.ctc_loss(x[:, None].log_softmax(-1), torch.tensor([[1, 2]]), (3,), (2,))


@pytest.mark.parametrize("made", [in_a_region, of_a_checkpoint, of_sequences])
def test_what_the_trace_has_other_functions_for(made: Callable[..., Any]) -> None:
    def f(x: torch.Tensor) -> Any:
        return str(made(x))

    x = (torch.arange(12.0).view(3, 4) / 7).requires_grad_()
    assert stator.compile(f, backend="eager")(x) == f(x)
