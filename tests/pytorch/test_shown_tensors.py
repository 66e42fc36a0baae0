"""Text of tensors where the program changes how tensors are shown: as they are shown when it is asked for."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import stator


@contextlib.contextmanager
def shown(**options: Any) -> Iterator[None]:
    torch.set_printoptions(**options)
    yield
    torch.set_printoptions(profile="default")


def in_between(x: torch.Tensor) -> Any:
    torch.set_printoptions(precision=2)
    text = repr(x)
    torch.set_printoptions(profile="default")
    return text, f"{x[0]}"


def in_a_context(x: torch.Tensor) -> Any:
    with shown(sci_mode=True):
        print(x)
    print(x)
    return x + 1


def before_and_after(x: torch.Tensor) -> Any:
    y = x * 2
    text = str(y)
    with shown(threshold=2, edgeitems=1):
        return text, f"{y}", y


def of_another_type(x: torch.Tensor) -> Any:
    torch.set_default_dtype(torch.float64)
    text = str(x)
    torch.set_default_dtype(torch.float32)
    return text, str(x)


def unchanged(x: torch.Tensor) -> Any:
    y = x * torch._tensor_str.get_printoptions()["precision"]
    with torch.no_grad():
        print(y)
    return str(y), y


def outcomes(function: Callable[..., Any], capsys: pytest.CaptureFixture[str]) -> list[str]:
    found = [repr(function(torch.arange(n * 3.0).view(n, 3) / 7)) for n in (2, 4, 5)]
    return [*found, capsys.readouterr().out]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", [in_between, in_a_context, before_and_after, of_another_type, unchanged])
def test_text_is_that_of_its_moment(
    program: Callable[..., Any], backend: str, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = outcomes(program, capsys)
    assert outcomes(stator.compile(program, backend=backend), capsys) == expected
    assert torch._tensor_str.get_printoptions()["precision"] == 4
    if program is unchanged:
        assert not stator.stats().breaks


def test_what_other_code_sets_is_met_at_the_next_call() -> None:
    compiled = stator.compile(unchanged, backend="eager", fullgraph=True)
    x = torch.ones(2) / 3
    compiled(x)
    with shown(precision=2):
        assert compiled(x)[0] == unchanged(x)[0] == "tensor([0.67, 0.67])"
