"""The nesting table: Stator inside and around other tracers, transforms, modes, threads and processes.

A row is right if results, gradients and what a mode sees are as without Stator, within a time limit; or it raises the
error that stands in `ERRORS`. Rows run in a process of their own, which is ended when one takes too long.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import stator
from tests.pytorch.nesting_tracers import TRACERS
from tests.pytorch.nesting_worker import ARRANGEMENTS, PROGRAMS

ROOT = Path(__file__).resolve().parents[2]
#: seconds: for a row, and for the start of a process
LIMIT, START = 30, 120

#: they take long themselves
SLOW = ("torch.compile, one graph", "torch.export strict", "torch.export", "make_fx symbolic", "DataLoader")
#: with these `torch.compile` is Stator
INSTALLED = ("torch.compile", "make_fx fake", "symbolic_trace", "jit.trace", "vmap", "checkpoint", "TorchDispatchMode")

#: tracer, arrangement, program → the error, by the beginning of its text and words in it
ERRORS: dict[tuple[str, str, str], tuple[str, str]] = {}

Row = tuple[str, str, str, bool]


def rows(tracer: str) -> Iterator[Row]:
    slow = tracer in SLOW
    for arrangement in ARRANGEMENTS:
        if arrangement in ("product", "itself") and TRACERS[tracer].make is None:
            continue
        some = ("a_callee", "a_submodule", "a_method") if slow else tuple(PROGRAMS)
        if arrangement != "inside":
            some = ("a_module",) if slow else ("breaking", "a_module")
        for program in some:
            yield tracer, arrangement, program, False
            if tracer in INSTALLED and program in ("a_function", "a_module"):
                yield tracer, arrangement, program, True


class Worker:
    """The process that runs rows; a new one is begun where there is none."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None
        self.answers: queue.Queue[str] = queue.Queue()

    def _begin(self) -> None:
        self.answers = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.pytorch.nesting_worker"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        threading.Thread(target=self._read, args=(self.process, self.answers), daemon=True).start()
        assert self.answers.get(timeout=START) == "ready"

    @staticmethod
    def _read(process: subprocess.Popen[str], answers: queue.Queue[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            answers.put(json.loads(line))
        answers.put("the process has ended")

    def run(self, row: Row) -> str:
        """What is wrong with the row; "" if nothing is."""
        if self.process is None or self.process.poll() is not None:
            self._begin()
        assert self.process is not None and self.process.stdin is not None
        self.process.stdin.write(json.dumps(row) + "\n")
        self.process.stdin.flush()
        try:
            return self.answers.get(timeout=LIMIT)
        except queue.Empty:
            self.end()
            return f"no answer in {LIMIT} seconds"

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.end()


@pytest.mark.parametrize("tracer", TRACERS)
def test_nesting(worker: Worker, tracer: str) -> None:
    wrong = {}
    for row in rows(tracer):
        found = worker.run(row)
        begin, words = ERRORS.get(row[:3], ("", ""))
        if not (found.startswith(begin) and words in found if begin else found == ""):
            wrong[row[1:]] = found
    assert not wrong


def test_the_errors_are_those_of_rows() -> None:
    known = {row[:3] for tracer in TRACERS for row in rows(tracer)}
    assert set(ERRORS) <= known


SPAWNED = """
import torch, stator

@stator.compile(backend="eager")
def program(x):
    return (x.sin() * 2).cos()

class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, i):
        result = program(torch.full((3,), float(i)))
        assert stator.stats().graphs == 1
        return result

if __name__ == "__main__":
    program(torch.ones(3))
    loader = torch.utils.data.DataLoader(Data(), 2, num_workers=1, multiprocessing_context="spawn")
    for got, numbers in zip(loader, ((0., 1.), (2., 3.)), strict=True):
        expected = torch.tensor(numbers)[:, None].expand(2, 3)
        assert torch.allclose(got, (expected.sin() * 2).cos())
    print("right")
"""


def test_workers_that_are_spawned(tmp_path: Path) -> None:
    script = tmp_path / "spawned.py"
    script.write_text(SPAWNED)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=START)
    assert done.stdout.strip() == "right", done.stderr


def test_what_torch_patches_when_it_has_compiled_is_traced_through() -> None:
    # torch.compile, once used, puts marks for itself on optimizers' methods and on the making of modules.
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    parameter = torch.nn.Parameter(torch.ones(3))
    parameter.grad = torch.ones(3)
    optimizer = torch.optim.SGD([parameter], 0.5)
    stator.compile(optimizer.step, backend="eager", fullgraph=True)()
    assert parameter.tolist() == [0.5] * 3
    layers = torch.nn.ModuleList([torch.nn.Identity(), torch.nn.ReLU()])
    compiled = stator.compile(lambda x: layers[1:][0](x), backend="eager", fullgraph=True)
    assert compiled(-torch.ones(2)).tolist() == [0.0, 0.0]
