"""Labels for profilers, and profilers, in compiled functions."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import stator
from tests.pytorch.training import BACKENDS

FastRecord: Any = torch._C._profiler._RecordFunctionFast
OUTER = FastRecord("outer")


def plain(x: Any) -> Any:
    with FastRecord("part"):
        y = x.sin()
    return y * x


def with_values(x: Any) -> Any:
    with FastRecord("part", (x, 3), {"grid": "1"}):
        y = x.sin()
    return y * x


def with_keywords(x: Any) -> Any:
    with FastRecord(name="part", input_values=[x.cos()]):
        return x.sin() * x


def existing(x: Any) -> Any:
    with OUTER:
        y = x.sin()
    with OUTER:
        return y * x


def given_back(x: Any) -> Any:
    record = FastRecord("part")
    with record:
        y = x.sin()
    assert type(record) is FastRecord and isinstance(record, object)
    return y * x


def broken_in_two(x: Any) -> Any:
    with FastRecord("part", (x,)), OUTER:
        y = x.sin()
        stator.graph_break()
        y = y * x
    return y


#: programs, and how often a trace of them breaks
PROGRAMS = {plain: 0, with_values: 0, with_keywords: 0, existing: 0, given_back: 0, broken_in_two: 1}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_fast_labels_are_traced(program: Any, backend: str) -> None:
    compiled = stator.compile(program, backend=backend)
    for size in (3, 3, 5):
        x = torch.linspace(-1, 1, size).requires_grad_()
        out = compiled(x)
        out.sum().backward()
        gradient, x.grad = x.grad, None
        program(x).sum().backward()
        torch.testing.assert_close(out, x.sin() * x)
        torch.testing.assert_close(gradient, x.grad)
        if size == 3:
            assert stator.stats().graph_breaks == PROGRAMS[program]


def test_a_label_around_a_break_is_begun_again_and_ends() -> None:
    compiled = stator.compile(broken_in_two, backend="eager")
    for _ in range(3):
        with torch.profiler.profile() as profiler:
            compiled(torch.ones(3))
            torch.ones(3).cos()
        names = [event.key for event in profiler.key_averages()]
        assert "part" in names and "outer" in names
        ends = {event.name: event.time_range.end for event in profiler.events()}
        starts = {event.name: event.time_range.start for event in profiler.events()}
        assert ends["part"] <= starts["aten::cos"] and ends["outer"] <= ends["part"]


def test_a_label_without_a_name_is_an_error() -> None:
    def program(x: Any) -> Any:
        try:
            FastRecord()
        except TypeError as error:
            return x.sin(), str(error)

    assert stator.compile(program, backend="eager")(torch.ones(2))[1] == program(torch.ones(2))[1]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("profile", [torch.profiler.profile, torch.autograd.profiler.profile])
def test_a_profiler_that_the_program_enters_sees_what_is_in_it(profile: Any, backend: str) -> None:
    def program(x: Any) -> Any:
        with profile() as profiler:
            y = x.sin()
        return y.cos(), profiler

    compiled = stator.compile(program, backend=backend)
    for size in (3, 3, 5):
        y, profiler = compiled(torch.ones(size))
        torch.testing.assert_close(y, torch.ones(size).sin().cos())
        if backend != "inductor":  # whose kernels have names of their own
            assert "aten::sin" in [event.key for event in profiler.key_averages()]
