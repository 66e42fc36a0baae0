"""`json.dumps` of what a graph gives: the text is made when it has run."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
import torch

import stator


def metrics(x: torch.Tensor, step: int, log: Any) -> Any:
    loss = x.sum()
    log.write(json.dumps({"step": step, "loss": loss.item(), "half": round(loss.item() / 2, 3), "done": None}) + "\n")
    return loss * 2


def printed(x: torch.Tensor, step: int, log: Any) -> Any:
    y = x.sin()
    values = [y.sum().item(), float("nan"), step, True, "Ø", f"{y.mean().item():.2f}", {1: y.numel()}]
    print(
        json.dumps(values),
        json.dumps((), separators=(",", ":")),
        json.dumps({"b": 1, "a": 2}, sort_keys=True),
        file=log,
    )
    return y


def kept(x: torch.Tensor, step: int, log: Any) -> Any:
    record = {"loss": x.sum().item()}
    text = json.dumps(record)
    record["loss"] = 0.0
    log.write(text)
    return x + 1, text, record


PROGRAMS = [metrics, printed, kept]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_lines_of_a_log(program: Any, backend: str) -> None:
    stator.reset()
    compiled = stator.compile(program, backend=backend, fullgraph=True)
    for n in range(6):
        x = torch.arange(2.0 + n) / 3 if n < 5 else torch.tensor([float("inf"), 1.0])
        told, expected = io.StringIO(), io.StringIO()
        assert str(compiled(x, n, told)) == str(program(x, n, expected))
        assert told.getvalue() == expected.getvalue() != ""
    assert stator.stats().frames <= 3, stator.stats().recompile_log


def test_gradients() -> None:
    def loss_of(x: torch.Tensor, log: Any) -> torch.Tensor:
        loss = x.square().sum()
        log.write(json.dumps({"loss": loss.item()}))
        return loss

    x = torch.arange(3.0, requires_grad=True)
    log = io.StringIO()
    stator.compile(loss_of, backend="aot_eager", fullgraph=True)(x, log).backward()
    assert log.getvalue() == '{"loss": 5.0}' and torch.equal(x.grad, 2 * x)


def refused(x: torch.Tensor, case: int) -> Any:
    holds_itself: list[Any] = []
    holds_itself.append(holds_itself)
    values: list[Any] = [{1, 2}, float("inf"), {(1,): 2}, holds_itself]
    try:
        return x + 1, json.dumps([values[case]], allow_nan=False)
    except (TypeError, ValueError) as error:
        return x - 1, type(error), str(error)


def test_what_is_no_json() -> None:
    compiled = stator.compile(refused, backend="eager")
    for case in range(4):
        assert str(compiled(torch.ones(2), case)) == str(refused(torch.ones(2), case))


def test_the_iterator_of_an_encoder() -> None:
    def parts(x: torch.Tensor) -> Any:
        return (
            x + 1,
            json.JSONEncoder().iterencode({"a": [1.5, None]}, _one_shot=True),
            list(json.JSONEncoder().iterencode([1])),
        )

    assert str(stator.compile(parts, backend="eager")(torch.ones(2))) == str(parts(torch.ones(2)))
