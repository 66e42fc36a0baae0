# needs: torch
"""The pages of docs/guide/ show what their programs really print."""

import importlib.util
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_listings_are_what_is_printed():
    tool = ROOT / "tools" / "listings"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"tools/listings writes them anew:\n{done.stdout}{done.stderr}"


def test_every_page_is_in_the_menu_of_the_site():
    loader = SourceFileLoader("site_tool", str(ROOT / "tools" / "site"))
    tool = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(tool)
    made = dict(tool.pages())
    written = {str(path.relative_to(tool.DOCS)) for path in tool.DOCS.rglob("*.md")}
    there = {path.removesuffix(".md") for path in {*made, *written} if not path.startswith("breaks/SB")}
    assert sorted(" ".join(tool.MENU.values()).split()) == sorted(there - {"index"})
    assert "](guide/gradients.md)" in made["index.md"]
    assert f"[SB0201](SB0201.md) | {made['breaks/SB0201.md'].splitlines()[0][10:]}" in made["breaks/index.md"]
