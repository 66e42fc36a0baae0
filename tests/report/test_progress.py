# needs: torch
"""Progress of long compiles: on a terminal alone, in one line, which is gone at the end."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import textwrap
import time

import torch

import stator
from stator.report.events import listening
from stator.report.progress import Progress

PATIENCE = 0.02


def slow(gm: torch.fx.GraphModule, inputs: object) -> object:
    time.sleep(10 * PATIENCE)
    return gm


def many(x: torch.Tensor) -> torch.Tensor:
    for _ in range(2000):
        x = x + 1
    return x


def shown(function: object, backend: object) -> list[str]:
    stream = io.StringIO()
    with listening(Progress(stream, PATIENCE)):
        stator.compile(function, backend=backend)(torch.ones(2))
    return stream.getvalue().split("\r")


def test_the_backends_share_is_told() -> None:
    start, *lines, end = shown(lambda x: x + 1, slow)
    assert start == "" and end == "\x1b[K"
    assert "stator: <lambda> (test_progress.py:" in lines[-1] and "operations" in lines[-1]
    assert any(", slow 0 s" in line for line in lines)


def test_the_line_and_the_operations_so_far_are_told() -> None:
    lines = shown(many, "eager")[1:-1]
    first = many.__code__.co_firstlineno
    assert any(f"many (test_progress.py:{line})" in text for text in lines for line in range(first, first + 4))
    assert any(re.search(rf", round \d+ of line {first + 1}, \d+ s", line) for line in lines)
    counts = [int(line.partition("): ")[2].split()[0]) for line in lines]
    assert counts == sorted(counts) and counts[-1] > counts[0]


def test_a_quick_compile_tells_nothing() -> None:
    stream = io.StringIO()
    with listening(Progress(stream, 60.0)):
        assert stator.compile(lambda x: x + 1, backend="eager")(1) == 2
    assert stream.getvalue() == ""


def test_the_program_sees_no_thread() -> None:
    import threading

    with listening(Progress(io.StringIO(), PATIENCE)):
        assert stator.compile(threading.active_count, backend="eager")() == threading.active_count()
        assert stator.compile(lambda: threading.active_count(), backend="eager")() == threading.active_count()


PROGRAM = """
    import time, torch, stator

    def slow(gm, inputs):
        time.sleep(1.3)
        return gm

    stator.compile(lambda x: x + 1, backend=slow)(torch.ones(2))
"""


def test_it_is_told_on_a_terminal_alone() -> None:
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb"):
        subprocess.run(command, stderr=theirs, check=True)
        os.close(theirs)
        assert b"stator: <lambda> (<string>:" in os.read(ours, 100_000)
