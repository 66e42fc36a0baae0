"""`stator ranks` runs a script in several processes and says how they differ."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stator.cli import main

SCRIPT = """
import os, sys
import torch, torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
if sys.argv[1] == "dies" and rank == 1:
    os.kill(os.getpid(), 9)

@torch.compile(backend="eager")
def step(x, sync):
    y = x + 1
    if sync:
        dist.all_reduce(y)
    return y

print(step(torch.ones(3), sys.argv[1] != "differs" or rank == 0))
"""


def ranks(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stator", "ranks", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=150)


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def test_ranks_that_differ(script: str) -> None:
    done = ranks("--json", "--nproc", "2", script, "differs")
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert not found["ok"] and found["difference"]["where"] == "script.py:14"
    assert set(found["difference"]["values"]) == {"0", "1"}
    assert [row["difference"] for row in found["ranks"]] == [found["difference"]] * 2
    assert "guard sync == True at script.py:13" in found["difference"]["text"]


def test_ranks_that_agree(script: str) -> None:
    done = ranks(script, "agrees")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("tensor([4., 4., 4.])") == 2 and done.stdout.endswith("2 ranks agree\n")


LEFT = """
import atexit, sys
import torch, torch.distributed as dist

dist.init_process_group("gloo")
x = torch.ones(3)
dist.all_reduce(x)

class Last:
    def __init__(self):
        self.has_group, self.out = dist.is_initialized, sys.stdout

    def __del__(self):
        self.out.write(f"group while Python ends: {self.has_group()}\\n")
        self.out.flush()

# Each line is one write: both ranks print to one pipe, and with PYTHONUNBUFFERED `print` writes a line in pieces,
# between which the other rank's can come.
sys.last = Last()
atexit.register(lambda: sys.stdout.write(f"group at exit: {dist.is_initialized()}\\n"))
"""


def test_a_group_that_the_script_leaves_is_ended(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(LEFT)
    done = ranks(str(path), "ends")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("group at exit: True") == done.stdout.count("group while Python ends: False") == 2


def test_a_rank_that_dies(script: str) -> None:
    done = ranks("--nproc", "2", script, "dies")
    assert done.returncode == 1 and "rank 1: ended by SIGKILL" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("arguments", [["nowhere.py"], ["--nproc", "0", __file__]])
def test_bad_usage(arguments: list[str]) -> None:
    assert main(["ranks", *arguments]) == 2
