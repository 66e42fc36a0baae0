# needs: torch
"""The README shows what its program really prints."""

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the listings are those that Python 3.11 gives")
def test_the_listings_are_what_is_printed():
    tool = Path(__file__).parent.parent / "tools" / "readme"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, f"tools/readme writes them anew:\n{done.stdout}{done.stderr}"
