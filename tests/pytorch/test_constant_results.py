"""Functions marked as always giving the same: run for real, once, with the objects and tensors that the program has."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stator
from tests.pytorch.programs import agree

BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager"])
MARKS = pytest.mark.parametrize("mark", [stator.assume_constant_result, torch.compiler.assume_constant_result])


class Config:
    def __init__(self, width: int) -> None:
        self.width = width

    @stator.assume_constant_result
    def scaled(self, k: int) -> int:
        return self.width * k


def leaf(rows: int) -> Any:
    return torch.randn(rows, 3, requires_grad=True)


@BACKENDS
@MARKS
@pytest.mark.parametrize("rows", [2, 4, 7])
def test_of_an_object(backend: str, mark: Any, rows: int) -> None:
    config = Config(5)
    width = mark(lambda config, k=1: config.width + k)
    agree(lambda: (lambda x: x * config.scaled(2) + width(config, k=3), (leaf(rows),)), backend=backend, grad=True)


def test_another_object_is_another_result() -> None:
    compiled = stator.compile(lambda config, x: x * config.scaled(2), backend="eager", fullgraph=True)
    first, second = Config(5), Config(6)
    assert [compiled(c, torch.ones(1)).item() for c in (first, second, first)] == [10, 12, 10]


@BACKENDS
@MARKS
@pytest.mark.parametrize("rows", [2, 4, 7])
def test_tensors_and_what_holds_them(backend: str, mark: Any, rows: int) -> None:
    kept = torch.arange(3.0)

    def program(x: Any) -> Any:
        pair, found = mark(lambda: ([kept * 2, kept], {"config": Config(4)}))()
        return x * mark(lambda: kept + 1)() + pair[0] + found["config"].width

    agree(lambda: (program, (leaf(rows),)), backend=backend, grad=True)


@MARKS
def test_of_a_tensor_that_the_call_was_given(mark: Any) -> None:
    asked = []

    @mark
    def positive(x: Any) -> bool:
        asked.append(x)
        return bool((x > 0).all())

    compiled = stator.compile(lambda x: x + 1 if positive(x) else x - 1, backend="eager", fullgraph=True)
    one = torch.ones(2)
    assert compiled(one).tolist() == [2, 2]
    assert compiled(torch.ones(2)).tolist() == [2, 2]
    assert len(asked) == 1 and asked[0] is one


def written(x: Any, config: Any, positive: Any) -> Any:
    x.add_(1)
    return x * positive(x)


def made(x: Any, config: Any, positive: Any) -> Any:
    return x * positive(x + 1)


def changed(x: Any, config: Any, positive: Any) -> Any:
    config.width += 1
    return x * config.scaled(2)


@BACKENDS
@pytest.mark.parametrize("program", [written, made, changed])
def test_what_is_not_as_it_was_before_the_call_breaks(backend: str, program: Any) -> None:
    positive = stator.assume_constant_result(lambda x: bool((x > 0).all()))
    stats = agree(lambda: (program, (torch.zeros(2), Config(5), positive)), backend=backend, breaks=None, calls=1)
    assert stats.breaks[0].code in ("SB0116", "SB0117")


def test_what_it_raises_is_raised() -> None:
    @stator.assume_constant_result
    def fails(config: Any) -> int:
        raise KeyError(config.width)

    def program(x: Any) -> Any:
        try:
            return x * fails(config)
        except KeyError as e:
            return x + e.args[0]

    config = Config(5)
    agree(lambda: (program, (torch.ones(2),)))


def test_inductor() -> None:
    kept = torch.arange(3.0)
    doubled = stator.assume_constant_result(lambda: kept * 2)
    agree(lambda: (lambda x: x.sin() + doubled(), (leaf(3),)), backend="inductor", grad=True, rtol=1e-5)
