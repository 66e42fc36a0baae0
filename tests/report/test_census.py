# needs: torch
"""`stator census` and the pytest plugin: what counts as worse, what does not, and the commands of the example."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SCRIPT = """
import torch


class Model(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        y = x * self.factor
        if y.sum() > 0:
            y = y + 1
        return y


model = torch.compile(Model(2), backend="eager")
model(torch.ones(2))
print("done")
"""

TESTS = """
import pytest, stator


@stator.compile(backend="eager")
def breaking(number):
    stator.graph_break()
    return number


@stator.compile(backend="eager")
def whole(number):
    return number


def test_whole(assert_no_graph_break):
    assert whole(1) == 1


@pytest.mark.graph_breaks(at_most=1)
def test_one():
    assert breaking(1) == 1


def test_any():
    assert breaking(2) == 2
"""


def run(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    """A command of the shell, with `stator` and `pytest` those of this environment."""
    words = shlex.split(command)
    module = {"stator": ["-m", "stator"], "pytest": ["-m", "pytest", "-p", "stator_pytest", "-p", "no:cacheprovider"]}
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    return subprocess.run(
        [sys.executable, *module[words[0]], *words[1:]], cwd=folder, env=environment, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def census(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("census")
    (folder / "train.py").write_text(SCRIPT)
    done = run(folder, "stator census train.py --save census.json")
    assert done.returncode == 0, done.stderr
    assert "done\n1 break, 0 recompiles" in done.stdout
    return (folder / "census.json").read_text()


@pytest.fixture
def saved(tmp_path: Path, census: str) -> Path:
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "census.json").write_text(census)
    return tmp_path


@pytest.mark.parametrize(
    ("old", "new", "code", "told"),
    [
        ("import torch\n", "import torch\n\n# lines that move\n\n", 0, "no difference"),
        ("Model(2)", "Model(3)", 0, "no difference"),
        ("if y.sum() > 0:", "if True:", 0, "fewer breaks:"),
        ("return y", "print(y.data_ptr())\n        return y", 1, "more breaks than before:"),
        ("print(", "model(torch.ones(2, 2))\nprint(", 1, "more recompiles than before:"),
        ("model = torch.compile(", "model = (lambda model, backend: model)(", 1, "no graph any more:"),
    ],
)
def test_what_is_worse(saved: Path, old: str, new: str, code: int, told: str) -> None:
    (saved / "train.py").write_text(SCRIPT.replace(old, new))
    done = run(saved, "stator census --check census.json train.py")
    assert done.returncode == code, done.stderr
    assert told in done.stdout and str(saved) not in done.stdout


def test_the_difference_can_be_read(saved: Path) -> None:
    (saved / "train.py").write_text(SCRIPT.replace("return y", "return y if y.max() > 0 else x"))
    done = run(saved, "stator census --check census.json train.py")
    assert done.stdout.splitlines()[1:] == [
        "breaks: 1 -> 2, recompiles: 0 -> 0",
        "more breaks than before:",
        "  1 x train.py:14 in Model.forward SB0201: a branch depends on the value of a tensor",
        "      return y if y.max() > 0 else x",
    ]


def test_less_in_all_is_no_worse(saved: Path) -> None:
    parts = "".join(f"    if x[{i}] > 0:\n        x = x + {i}\n" for i in range(3))
    head, foot = "import torch\n@torch.compile(backend='eager')\ndef f(x):\n", "    return x\nf(torch.ones(3))\n"
    (saved / "many.py").write_text(head + parts + foot)
    assert run(saved, "stator census many.py --save many.json").returncode == 0
    for moved, code, title in (("(x * 2)[0]", 0, "breaks at other places"), ("x[0] > 1 and x[1]", 1, "more breaks")):
        left = f"    if {moved} > 0:\n        x = x - 1\n"
        (saved / "many.py").write_text(head + (left if code == 0 else left * 3) + foot)
        done = run(saved, "stator census many.py --check many.json")
        assert done.returncode == code and title in done.stdout, done.stdout


def test_long_lists_are_cut_short(saved: Path) -> None:
    breaks = "".join(f"    if x[{i}] > 0:\n        x = x + {i}\n" for i in range(12))
    (saved / "long.py").write_text(
        "import torch\n@torch.compile(backend='eager')\n"
        f"def f(x, many):\n{breaks}    return x\nfor i in range(2): f(torch.ones(12), 3)\n"
    )
    first, *told = run(saved, "stator census long.py").stdout.splitlines()
    assert first.startswith("12 breaks") and told[0] == "breaks:"
    assert told[-1] == "  2 more: --all lists them" and len(told) == 22
    everything = run(saved, "stator census --all long.py").stdout
    assert "--all" not in everything and everything.count("SB0201") == 12 and "\ngraphs:\n" in everything

    (saved / "train.py").write_text(SCRIPT.replace("factor", "scale"))
    check = "stator census --check census.json train.py"
    assert run(saved, check).stdout.endswith("new specialisations:\n  1: --all lists them\n")
    assert "new specialisations:\n  1 x train.py:11" in run(saved, f"{check} --all").stdout


def test_as_json(saved: Path) -> None:
    (saved / "train.py").write_text(SCRIPT.replace("if y.sum() > 0:", "if True:"))
    done = run(saved, "stator census --check census.json --json train.py")
    assert list(json.loads(done.stdout)["changed"]) == ["fewer breaks"] and "done" in done.stderr
    [brk] = json.loads((saved / "census.json").read_text())["breaks"]
    assert (brk["file"], brk["function"], brk["line"], brk["count"]) == ("train.py", "Model.forward", 12, 1)
    census = json.loads((saved / "census.json").read_text())
    assert [item["what"] for item in census["specialisations"]] == ["self.factor"]


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        ("stator census nothing.py", 2, "no such file: nothing.py"),
        ("stator census train.py --check train.py", 2, "is no census"),
        ("stator census train.py --check nothing.json", 2, "is no census"),
        ("stator census train.py --check census.json --save census.json", 2, "not"),
        ("stator census failing.py --save other.json", 1, "the script ended with exit code 3"),
    ],
)
def test_what_cannot_be_done(saved: Path, command: str, code: int, told: str) -> None:
    (saved / "failing.py").write_text("raise SystemExit(3)")
    done = run(saved, command)
    assert done.returncode == code and told in done.stderr and not (saved / "other.json").exists()


def test_the_commands_of_the_example_do_what_it_says(saved: Path) -> None:
    example = (ROOT / "examples" / "census.yml").read_text()
    commands = re.findall(r"run: ((?:stator|pytest) .*)", example)
    (saved / "test_it.py").write_text(TESTS)
    assert [command.split()[0] for command in commands] == ["stator", "pytest"]
    for _ in range(2):  # pytest writes its census, then compares with it
        assert [run(saved, command).returncode for command in commands] == [0, 0]
    (saved / "train.py").write_text(SCRIPT.replace("return y", "return y if y.max() > 0 else x"))
    worse = TESTS.replace("return number", "stator.graph_break()\n    return number", 1).replace(
        "at_most=1", "at_most=9"
    )
    (saved / "test_it.py").write_text(worse)
    done = [run(saved, command) for command in commands]
    assert [each.returncode for each in done] == [1, 1]
    assert "Stator's census" in done[1].stdout and "more breaks than before:" in done[1].stdout


def test_the_marker_and_the_fixture(tmp_path: Path) -> None:
    more = "    stator.graph_break()\n    return number"
    (tmp_path / "test_it.py").write_text(TESTS.replace("    return number", more))
    done = run(tmp_path, "pytest -q")
    assert done.returncode == 1 and "2 failed, 1 passed" in done.stdout
    assert "1 graph breaks, 0 allowed" in done.stdout and "2 graph breaks, 1 allowed" in done.stdout
    assert "test_it.py:7 in breaking" in done.stdout and "stator why SB0301" in done.stdout


def test_a_marker_without_a_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS.replace("at_most=1", ""))
    assert "takes a number" in run(tmp_path, "pytest -q").stdout


def test_the_plugin_imports_nothing_while_it_is_not_used(tmp_path: Path) -> None:
    text = "import sys\ndef test_it():\n    assert not {'stator', 'torch'} & set(sys.modules)\n"
    (tmp_path / "test_it.py").write_text(text)
    done = run(tmp_path, "pytest -q")
    assert done.returncode == 0, done.stdout
