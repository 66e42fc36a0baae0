"""Each program of apptests/, four ways: eagerly, as one graph, with breaks allowed, with a break everywhere.

A program is a function `test_*` or `app_*` of no arguments whose asserts say what must hold; what it returns must
be what it returns eagerly. It may be run any number of times. Files whose first line is `# needs: torch` are left
out where torch is missing. The files are not called test_*.py: pytest would rewrite their asserts, and with them the
bytecode that is traced.
"""

import gc
import importlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import stator
from stator.errors import GraphBreakError
from tests.needs import HAS_TORCH, needs_torch

FOLDER = Path(__file__).resolve().parent.parent / "apptests"
Program = Callable[[], object]


def run_eagerly(program: Program) -> None:
    assert same(program(), program())


def run_as_one_graph(program: Program) -> None:
    assert same(stator.compile(program, backend="eager", fullgraph=True)(), program())


def run_with_breaks(program: Program) -> None:
    compiled = stator.compile(program, backend="eager")
    assert same(compiled(), program())
    assert same(compiled(), program())  # what the first call cached


def run_with_a_break_everywhere(program: Program) -> None:
    # Every instruction with STATOR_BREAKS=all; else all of a program's beginning, and then fewer and fewer, which runs
    # on two Pythons share. The core's without torch repeat what those with it do, for fewer yet, which three share.
    if os.environ.get("STATOR_BREAKS") == "all":
        stator.testing.break_everywhere(program)
    else:
        spread, runs = (3, 2) if HAS_TORCH else (3, 3)
        stator.testing.break_everywhere(program, spread=spread, share=(sys.version_info.minor % runs, runs))


def same(left: object, right: object) -> bool:
    """Equal in structure and type; tensors also in dtype, device, shape and every element."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    if hasattr(left, "requires_grad"):
        return same_tensors(left, right)
    return bool(left == right)


def same_tensors(left: Any, right: Any) -> bool:
    facts = [(t.dtype, t.device, t.shape, t.requires_grad) for t in (left, right)]
    return facts[0] == facts[1] and bool((left.isclose(right, rtol=0, atol=0, equal_nan=True)).all())


def programs() -> Iterator[Program]:
    for path in sorted(FOLDER.glob("*.py")):
        if needs_torch(path) and not HAS_TORCH:
            continue
        assert not path.stem.startswith("test_"), path
        module = importlib.import_module(f"apptests.{path.stem}")
        for name, value in vars(module).items():
            if name.startswith(("test_", "app_")) and callable(value):
                yield value


def label(program: Program) -> str:
    return f"{program.__module__.removeprefix('apptests.app_')}.{program.__name__}"


PROGRAMS = {label(program): program for program in programs()}


def one_graph_cases() -> Iterator[object]:
    for name, program in PROGRAMS.items():
        reason = getattr(program, "expected_break", None)
        marks = [pytest.mark.xfail(strict=True, reason=reason, raises=GraphBreakError)] if reason else []
        yield pytest.param(program, id=name, marks=marks)


@pytest.fixture(autouse=True)
def only_own_garbage() -> Iterator[None]:
    """A program that collects garbage does not search all that torch and the other tests have made, again and again."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(autouse=True, scope="module")
def frozen_again() -> Iterator[None]:
    """Nor do later tests search it (see conftest.py)."""
    yield
    gc.collect()
    gc.freeze()


every_program = pytest.mark.parametrize("program", list(PROGRAMS.values()), ids=list(PROGRAMS))


def test_there_are_programs():
    assert len(PROGRAMS) >= 20


@every_program
def test_eager(program: Program):
    run_eagerly(program)


@pytest.mark.parametrize("program", list(one_graph_cases()))
def test_one_graph(program: Program):
    run_as_one_graph(program)


@every_program
def test_with_breaks(program: Program):
    run_with_breaks(program)


@every_program
def test_break_everywhere(program: Program):
    run_with_a_break_everywhere(program)
