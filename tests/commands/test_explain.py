# needs: torch
"""`stator explain script.py`: run as a program, as users do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import sys
import torch

@torch.compile(backend="eager")
def scaled(x, k):
    h = x * k
    if h.sum() > 0:
        h = h / h.sum()
    return h

scaled(torch.ones(2), 2)
scaled(torch.ones(2), 3)
print(sys.argv[1:])
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def explain(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "stator", "explain", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240)


def test_it_tells_what_happened_after_what_the_script_prints(script):
    done = explain(script)
    assert done.returncode == 0, done.stderr
    first, *told = done.stdout.splitlines()
    assert first == "[]" and told[0].startswith("script.py: ")
    assert "  SB0201  script.py:8  (2 times)" in told and any("`k` was 2, is 3" in line for line in told)


def test_options_stand_before_or_behind_the_script_and_its_own_behind_dashes(script, tmp_path):
    done = explain(script, "--html", tmp_path / "out.html", "-v", "--", "--html", "x")
    assert done.stdout.startswith("['-v', '--html', 'x']\n") and (tmp_path / "out.html").is_file()
    done = explain("--html", tmp_path / "other.html", script, "--", "--json")
    assert done.stdout.startswith("['--json']\n") and (tmp_path / "other.html").is_file()


def test_all_frames_are_listed_if_asked_for(tmp_path):
    path = tmp_path / "many.py"
    lines = [f"stator.compile(lambda x: x * {i}, backend='eager')(torch.ones(2))" for i in range(15)]
    path.write_text("\n".join(["import stator, torch", *lines]))
    assert "… and 3 more, captured whole: stator explain --all" in explain(path).stdout
    done = explain("--all", path)
    assert "… and" not in done.stdout and "\n  15  <lambda> (many.py:16)" in done.stdout


def test_as_json_nothing_else_is_printed(script):
    done = explain(script, "--json")
    found = json.loads(done.stdout)
    assert [site["code"] for site in found["breaks"]] == ["SB0201", "SB0201"]
    assert (found["recompiles"][0]["was"], found["recompiles"][0]["now"]) == ("2", "3")
    assert done.stderr == "[]\n"


@pytest.mark.parametrize(("end", "code"), [("sys.exit(7)", 7), ("raise KeyError('mine')", 1), ("sys.exit('no')", 1)])
def test_a_script_that_fails_is_explained_until_then(script, end, code):
    script.write_text(SCRIPT + end)
    done = explain(script)
    assert done.returncode == code and "SB0201" in done.stdout
    assert ("mine" in done.stderr) == ("mine" in end) and ("no" in done.stderr.split()) == ("no" in end)


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("raise KeyError('mine')", "line 15, in <module>\n    raise KeyError('mine')\nKeyError: 'mine'\n"),
        ("def f(x:", "line 15\n    def f(x:\n         ^\nSyntaxError: '(' was never closed\n"),
    ],
)
def test_how_a_script_fails_is_told_without_what_has_run_it(script, end, told):
    script.write_text(SCRIPT + end)
    done = explain(script)
    assert told in done.stderr and "commands" not in done.stderr, done.stderr
    assert "stator: the script has failed; what is told is of what ran until then\n" in done.stderr


def test_no_such_script_is_bad_usage():
    done = explain("nowhere.py")
    assert done.returncode == 2 and done.stderr == "stator explain: no such file: nowhere.py\n"


def test_a_script_that_compiles_nothing_is_told_so(tmp_path):
    (tmp_path / "script.py").write_text("x = 1")
    assert "Nothing was compiled" in explain(tmp_path / "script.py").stdout
