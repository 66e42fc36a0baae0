"""Texts that vary from call to call, joined and printed: no entry for each of them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch

import stator

Program = Callable[..., Any]


@stator.disable
def mean_of(n: int) -> float:
    return n / 7


def part_of_a_line(x: torch.Tensor, n: int, names: tuple[str, str]) -> Any:
    y = x * 2
    print(f"step {n:3d} avg {mean_of(n):.5f}")
    return y


def several_parts(x: torch.Tensor, n: int, names: tuple[str, str]) -> Any:
    y = x * 2
    print(f"step {n} loss {x.sum().item():.5f} avg {y.mean().item():.4f}", f"acc {mean_of(n):.2f}")
    return y + 1


def arguments(x: torch.Tensor, n: int, names: tuple[str, str]) -> Any:
    first, second = names
    print(first, second, f"{first}/{second}", sep="|")
    return x + 1, f"{second}: {first}"


def logged(x: torch.Tensor, n: int, names: tuple[str, str]) -> Any:
    logging.getLogger("varying").warning(f"{names[0]} and {names[1]}")
    return x + 1


def written(x: torch.Tensor, n: int, names: tuple[str, str]) -> Any:
    y = x * 2
    first = sys.stdout.write(names[0] + "\n")
    second = sys.stdout.write(names[0] + f"loss {y.sum().item()} " + names[1] + "\n")
    line = "step " + str(n) + ": "
    line += f"{mean_of(n):.3f}"
    line += names[1]
    sys.stdout.write(line)
    return y + 1, first + second


def in_errors(x: torch.Tensor, n: int, names: tuple[str, str]) -> Any:
    try:
        raise ValueError(f"{names[0]} is no {names[1]}")
    except ValueError as error:
        return x + 1, error.args, str(error)


def as_a_key(x: torch.Tensor, n: int, names: tuple[str, str]) -> Any:
    table = {"a1b1": 1}
    key = names[0] + names[1]
    table[f"{names[0]}{names[1]}"] = 2
    return x * table.get(key, 3), key == "a1b1", len(key), table


LATE: list[Program] = [part_of_a_line, several_parts, arguments, logged, written, in_errors]


def run(function: Program, n: int, capfd: Any, caplog: Any) -> Any:
    caplog.clear()
    result = function(torch.arange(3.0) + n, n, (f"a{n}", f"b{n % 3}"))
    return result, capfd.readouterr().out, [each.getMessage() for each in caplog.records if each.name == "varying"]


def assert_same_runs(function: Program, backend: str, capfd: Any, caplog: Any) -> None:
    stator.reset()
    compiled = stator.compile(function, backend=backend)
    for n in range(9):
        found, expected = (run(f, n, capfd, caplog) for f in (compiled, function))
        assert str(found) == str(expected)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("function", LATE, ids=lambda f: f.__name__)
def test_one_entry_is_for_all_texts(function: Program, backend: str, capfd: Any, caplog: Any) -> None:
    assert_same_runs(function, backend, capfd, caplog)
    assert stator.stats().frames <= 4, stator.stats().recompile_log


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_what_depends_on_a_text_is_for_it_alone(backend: str, capfd: Any, caplog: Any) -> None:
    assert_same_runs(as_a_key, backend, capfd, caplog)


def printed_to(x: torch.Tensor, first: str, second: str, file: Any) -> torch.Tensor:
    print(f"{first} {second}", file=file)
    return x + 1


def written_to(x: torch.Tensor, first: str, second: str, file: Any) -> torch.Tensor:
    return x + file.write(first + " " + second)


@pytest.mark.parametrize("report", [printed_to, written_to], ids=lambda f: f.__name__)
def test_letters_that_a_file_may_not_take_are_known(report: Program, tmp_path: Any) -> None:
    calls = [("a", "b"), ("c", "d"), ("e", "f"), ("g", "h\udc80"), ("é", "i"), ("j", "k")]
    for encoding in ("ascii", "utf-8"):
        stator.reset()
        compiled = stator.compile(report, backend="eager")
        told = []
        for function in (report, compiled):
            with open(tmp_path / "out", "w", encoding=encoding) as file:
                outcomes = []
                for first, second in calls:
                    try:
                        outcomes.append(function(torch.ones(1), first, second, file).tolist())
                    except UnicodeEncodeError as error:
                        outcomes.append(str(error))
            told.append((outcomes, (tmp_path / "out").read_bytes()))
        assert told[0] == told[1]
