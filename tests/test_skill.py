# needs: torch
"""skills/debug-graph-breaks/SKILL.md: its commands run, and its fix fixes."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

SKILL = Path(__file__).parent.parent / "skills" / "debug-graph-breaks" / "SKILL.md"


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", SKILL.read_text(encoding="utf-8"), re.M | re.S)


def test_it_has_a_name_and_says_when_to_use_it():
    _, front, _ = SKILL.read_text(encoding="utf-8").split("---\n", 2)
    found = dict(line.split(": ", 1) for line in front.splitlines())
    assert found["name"] == SKILL.parent.name and found["description"]


def test_its_commands_run_and_its_fix_fixes(tmp_path):
    for program in blocks("python"):
        (tmp_path / re.match(r"# (\S+\.py)\n", program)[1]).write_text(program)
    commands = [line for block in blocks("sh") for line in block.splitlines()]
    printed = {}
    for command in commands:
        tool, *arguments = shlex.split(command)
        assert tool == "stator"
        done = subprocess.run([sys.executable, "-m", tool, *arguments], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        printed[command] = done.stdout
    before = json.loads((tmp_path / "before.json").read_text())
    assert [found["what"] for found in before["breaks"]] == ["SB0201"] and before["recompiles"]
    (compared,) = [text for command, text in printed.items() if "--check" in command]
    assert "SB0201" in compared, compared
    assert "train.py:8" in printed["stator explain train.py"] and "torch.where" in printed["stator why SB0201"]
    assert (tmp_path / "explained.html").is_file() and len(commands) == 8


def test_the_codes_of_its_table_are_all_that_there_are():
    from stator.errors import kinds

    listed = set(re.findall(r"^\| (SB\d\d) \|", SKILL.read_text(encoding="utf-8"), re.M))
    assert listed == {kind.code[:4] for kind in kinds()}
