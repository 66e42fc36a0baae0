"""What the documents name exists: files and folders, and names of the package."""

import importlib
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
OTHERS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks" / "README.md"]
PAGES = [*sorted(DOCS.rglob("*.md")), *OTHERS]
#: the page that names files of torch
OF_TORCH = "is_compiling.md"
PLACES = (ROOT, ROOT / "src" / "stator", ROOT / "src" / "stator" / "_core", ROOT / "benchmarks", ROOT / "tests")
QUOTED = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+(/[\w.-]+)*(/|\.(py|pyi|cpp|h|md|toml|txt|yml))\Z")
DOTTED = re.compile(r"stator(\.[a-z_]\w*)+\Z")
#: what is made when something runs, is the reader's own, or belongs to PyPy, multidict, tinygrad
ELSEWHERE = re.compile(
    r"build/|dist/|\.venv|\.\./|/tmp|script\.py|pypy/|objspace/|uop/|baseobjspace\.py|scaled\.py|\w+\.html"
)


def words(page):
    return set(QUOTED.findall(page.read_text(encoding="utf-8")))


def paths(page):
    """The words that are paths of files or folders of ours."""
    return sorted(word for word in words(page) if PATH.match(word) and not ELSEWHERE.match(word))


def exists(word):
    return any((place / word).exists() for place in PLACES) or any((ROOT / "src" / "stator").rglob(word.rstrip("/")))


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != OF_TORCH], ids=lambda page: page.name)
def test_files_exist(page):
    assert [word for word in paths(page) if not exists(word)] == []


def test_the_tree_is_that_of_the_sources():
    """docs/architecture.md draws the package: each line begins with a file or folder, and none is left out."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    tree = re.search(r"^src/stator/\n(.*?)^tests/", text, re.M | re.S)[1]
    drawn = {line.split()[0].rstrip("/") for line in tree.splitlines() if re.match(r"  \w", line)}
    there = {path.name for path in (ROOT / "src" / "stator").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert drawn == there - {"__pycache__"}


def resolves(name):
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:end]))
        except ImportError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_resolve(page):
    assert [word for word in sorted(words(page)) if DOTTED.match(word) and not resolves(word)] == []


def blocks(name):
    """The listings of Python on a page of docs/."""
    return re.findall(r"^```python\n(.*?)^```$", (DOCS / name).read_text(encoding="utf-8"), re.M | re.S)


def printed(program, tmp_path):
    """What the program prints, run as a file, since what is traced has one."""
    path = tmp_path / "example.py"
    path.write_text(program, encoding="utf-8")
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.needs_torch
def test_the_listings_for_debugging_run(tmp_path):
    text = printed("\n".join(blocks("debugging.md")), tmp_path)
    assert "f used 1 times" in text
    assert "size 0 of `x` was 3, is 4" in text


EFFECTS = """
import stator


def f(log):
    log.append(len(log))
    print("called")
    return {"log": log}


stator.compile(f)([])
"""


def test_the_listing_that_tells_where_effects_come_from_runs(tmp_path):
    text = printed(blocks("patterns.md")[-1] + EFFECTS, tmp_path)
    assert [word for word in ("mutated:", "put off:", "line: a_dict") if word not in text] == []


@pytest.mark.needs_torch
def test_what_is_generated_for_a_pytree(tmp_path):
    program, generated = blocks("pytree.md")
    assert textwrap.indent(textwrap.dedent(generated), "    ") in printed(program, tmp_path)


def test_a_file_that_is_missing_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("`src/stator/interp/trace.py` and `src/stator/nowhere.py`, made by `build/x.log`")
    assert [word for word in paths(page) if not exists(word)] == ["src/stator/nowhere.py"]
    assert not resolves("stator.nowhere")
