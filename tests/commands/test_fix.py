# needs: torch
"""`stator explain --fix`: patches that hold are made, others are not, and the files are the user's."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stator.commands.fix import refusal

SCRIPT = """
import torch
import helper


@torch.compile(backend="eager")
def scaled(x):
    h = x * 2
    if h.sum() > 4:  # large
        h = h / h.sum()
    return helper.shifted(h)


for rows in (2, 3, 4):
    print(scaled(torch.ones(rows)))
"""
HELPER = """
import torch


def shifted(h):
    low = h.min() < 0 or h.max() > 1
    return h + 1 if low else -h
"""
FIXED = """
import torch
import helper


@torch.compile(backend="eager", dynamic=True)
def scaled(x):
    h = x * 2
    # large
    h = torch.cond(h.sum() > 4, lambda: h / h.sum(), lambda: h.clone())
    return helper.shifted(h)


for rows in (2, 3, 4):
    print(scaled(torch.ones(rows)))
"""
FIXED_HELPER = """
import torch


def shifted(h):
    low = torch.logical_or(h.min() < 0, h.max() > 1)
    return torch.where(low, h + 1, -h)
"""


def stator(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *map(str, arguments)], capture_output=True, text=True, timeout=240)


def test_what_holds_is_made_in_all_files(tmp_path: Path) -> None:
    script, helper = tmp_path / "script.py", tmp_path / "helper.py"
    script.write_text(SCRIPT)
    helper.write_text(HELPER)
    done = stator("stator", "explain", script, "--fix")
    assert done.returncode == 0, done.stderr
    assert script.read_text() == FIXED and helper.read_text() == FIXED_HELPER
    told = done.stdout.partition("script.py: ")[2]
    assert "-    if h.sum() > 4:  # large" in told and told.count("made, and it holds: ") == 4
    assert "\nPatches: 4 offered, 4 made\n" in told and "not made" not in told
    assert "  graph breaks: 6 before, 0 after\n" in told and "Frames" not in told
    assert max(map(len, told.splitlines())) <= 80


def test_the_whole_report_is_for_who_asks(tmp_path: Path) -> None:
    """Nothing is said to be mended where no patch is offered."""
    script = tmp_path / "script.py"
    script.write_text(BROKEN)
    short, whole = (stator("stator", "explain", script, *flags).stdout for flags in (["--fix"], ["--fix", "--all"]))
    end = (
        "\nPatches: none is offered; nothing here is mended by a mechanical change\n\nNothing is changed:\n"
        "  graph breaks: 1 (SB0115 at script.py:8)\n  recompiles: 0\n  graphs: 2\n"
    )
    assert short.endswith(f"{end}stator explain SCRIPT tells of each\n") and len(short.splitlines()) == 9
    assert "\nFrames\n" in whole and "what helps" in whole and whole.endswith(end)


def test_a_script_runs_once_where_no_patch_is_offered(tmp_path: Path) -> None:
    script, runs = tmp_path / "script.py", tmp_path / "runs"
    script.write_text(f"open({str(runs)!r}, 'a').write('.')\n{BROKEN}")
    assert stator("stator", "explain", script, "--fix").returncode == 0
    assert runs.read_text() == "."


def test_a_script_runs_no_more_often_than_patches_need(tmp_path: Path) -> None:
    """To tell what there is, to compare with, and with what is offered."""
    script, runs = tmp_path / "script.py", tmp_path / "runs"
    script.write_text(f"open({str(runs)!r}, 'a').write('.')\n{SCRIPT.replace('helper.shifted(h)', '-h')}")
    (tmp_path / "helper.py").write_text("")
    assert "2 offered, 2 made" in stator("stator", "explain", script, "--fix").stdout
    assert runs.read_text() == "..."


BROKEN = """
import torch


@torch.compile(backend="eager")
def doubled(x):
    x = x + 1
    torch.save(x, "/dev/null")
    return x * 2


doubled(torch.ones(3))
"""


ONE_SIDE = """
import torch


def chosen(x):
    return x.sum() if x.mean() > 0 else x


compiled = torch.compile(chosen, backend="inductor")
compiled(torch.ones(3))
"""


def test_a_trial_finds_what_the_run_has_not_shown(tmp_path: Path) -> None:
    """The result of `torch.where` is of one kind, whichever side is taken: the run has met the one that is the same."""
    script, request, report = tmp_path / "script.py", tmp_path / "request", tmp_path / "report"
    script.write_text(ONE_SIDE)
    patched = ONE_SIDE.replace("x.sum() if x.mean() > 0 else x", "torch.where(x.mean() > 9, x.sum(), x)")
    request.write_text(json.dumps({"texts": {str(script): patched}, "lines": {str(script): [6]}}))
    done = stator("stator.commands.one_trial", request, report, script)
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())
    assert found["choices"] == [f"{script}:6"] and found["results"] and not found["breaks"]
    before = {**found, "choices": [], "breaks": [["SB0201", f"{script}:6", ""]]}
    assert refusal(before, found) == "the sides are of two kinds at script.py:6"


NOTHING: dict[str, Any] = {
    **{"code": 0, "results": [], "said": "a\nb\n", "left": {}, "generators": ""},
    **{"breaks": [["SB0201", "f.py:3", ""]], "recompiles": [], "choices": [], "graphs": 2, "seconds": 2.0},
}


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ({"breaks": []}, None),
        ({}, "no more is captured"),
        ({"graphs": 1}, None),
        ({"graphs": 1, "recompiles": [["SB0601", "f.py:3", ""]]}, "no more is captured"),
        ({"breaks": [], "recompiles": [["SB0601", "f.py:3", ""]]}, "no more is captured"),
        ({"breaks": [], "code": 3}, "the script ends otherwise: b"),
        ({"breaks": [], "code": 1, "said": "a\nKeyError: 3\n"}, "the script ends otherwise: KeyError: 3"),
        ({"breaks": [], "results": ["x"]}, "a compiled function gives something else"),
        ({"breaks": [], "said": "a\nc\n"}, "the script prints something else: 'c' where it was 'b'"),
        ({"breaks": [], "generators": "x"}, "random generators are used otherwise"),
        ({"breaks": [], "left": {"x": ""}}, "the script leaves other values behind"),
        ({"breaks": [], "seconds": 4.9}, None),
        ({"breaks": [], "seconds": 6.04}, "the script runs 6.0 s where it ran 2.0, without compiling"),
    ],
)
def test_a_patch_holds_if_all_is_the_same_and_more_is_captured(after: dict[str, Any], why: str | None) -> None:
    assert refusal(NOTHING, {**NOTHING, **after}) == why


TELLING = """
import sys
import torch


@torch.compile(backend="eager", dynamic=False)
def scaled(x, rate):
    norm = x.norm()
    if norm > 1:  # too large
        print(f"large: {norm.item():.3f}")
    sys.stdout.flush()
    x = x / (norm + 1)
    return x * 2, rate


for rows in (2, 3, 4):
    x = torch.ones(rows)
    print(scaled(x, 0.5))
"""
TOLD = """
import sys
import torch


@torch.compile(backend="eager", dynamic=False)
def scaled(x, rate):
    norm = x.norm()
    x = x / (norm + 1)
    returned = x * 2, rate
    if norm > 1:  # too large
        print(f"large: {norm.item():.3f}")
    sys.stdout.flush()
    return returned


for rows in (2, 3, 4):
    x = torch.ones(rows)
    torch._dynamo.mark_dynamic(x, 0)
    print(scaled(x, 0.5))
"""


def test_what_tells_goes_behind_and_a_size_is_marked(tmp_path: Path) -> None:
    """`dynamic=False` is the program's own word: the size alone is marked."""
    script = tmp_path / "script.py"
    script.write_text(TELLING)
    done = stator("stator", "explain", script, "--fix")
    assert done.returncode == 0, done.stderr
    assert script.read_text() in (TOLD, TELLING), script.read_text()
    assert script.read_text() == TOLD, done.stdout
    assert done.stdout.count("made, and it holds: ") == 2
    assert "\n    script.py: if norm > 1:  # too large\n" in done.stdout


UNSTEADY = """
import os
import torch


@torch.compile(backend="eager")
def chosen(x):
    return x.sum() if x.mean() > 0 else x.mean()


print(chosen(torch.ones(3)), os.urandom(8).hex())
"""


def test_a_script_that_does_not_do_the_same_each_time_gets_no_patch_and_an_exit_code(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNSTEADY)
    done = stator("stator", "explain", script, "--fix")
    assert done.returncode == 1 and "does not do the same each time" in done.stderr
    assert "\nPatches: 1 offered, 0 made\n  not made: " in done.stdout
    assert script.read_text() == UNSTEADY
