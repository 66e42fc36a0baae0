"""The command line: what it prints, as text and as JSON, and its exit codes."""

import json
import subprocess
import sys

import pytest

from stator import cli, errors


def test_codes_lists_every_kind(capsys):
    assert cli.main(["codes"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [kind.code for kind in errors.kinds()]


def test_codes_as_json(capsys):
    assert cli.main(["codes", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"code": "SB0201", "name": "DataDependentBranch", "title": errors.DataDependentBranch.title} in rows


def test_why_prints_the_page(capsys):
    assert cli.main(["why", "sb0201"]) == 0
    assert capsys.readouterr().out.strip() == errors.page("SB0201").strip()


def test_why_without_a_page_prints_the_hint(capsys, monkeypatch):
    monkeypatch.setattr(errors, "page", lambda code: None)
    assert cli.main(["why", "SB0303"]) == 0
    assert errors.ForcedBreak.hint in capsys.readouterr().out


def test_why_as_json(capsys):
    assert cli.main(["why", "SB0201", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["page"] == errors.page("SB0201")


def test_unknown_code_is_bad_usage(capsys):
    assert cli.main(["why", "SB9999"]) == 2
    assert "SB9999" in capsys.readouterr().err


def test_retired_code_says_what_became_of_it(capsys, monkeypatch):
    monkeypatch.setitem(errors.RETIRED, "SB9998", "merged into SB0101")
    assert cli.main(["why", "SB9998"]) == 0
    assert "merged into SB0101" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["why"]])
def test_bad_usage(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    assert caught.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_doctor_reports_health(capsys):
    assert cli.main(["doctor", "--json", "--config"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] and {check["name"] for check in report["checks"]} >= {"python", "C++ core", "torch"}
    assert report["config"]["recompile_limit"]["default"] == 8


@pytest.mark.needs_torch
def test_doctor_says_whether_torch_fits(capsys, monkeypatch):
    import torch

    assert cli.main(["doctor"]) == 0
    assert "its internals are as Stator needs them" in capsys.readouterr().out
    monkeypatch.delattr(torch._C, "_dispatch_keys")
    assert cli.main(["doctor"]) == 1
    told = capsys.readouterr().out
    assert "FAIL torch: Stator does not fit torch" in told and "torch._C._dispatch_keys is not there" in told


def test_doctor_fails_without_the_core(capsys, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "stator._core", None)
    assert cli.main(["doctor"]) == 1
    assert "FAIL C++ core" in capsys.readouterr().out


def test_nobody_reads_to_the_end():
    command = [sys.executable, "-m", "stator", "codes", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141
