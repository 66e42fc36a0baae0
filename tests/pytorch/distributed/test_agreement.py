"""Ranks that would run different collectives raise one error, each of them; what differs otherwise is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pytorch.distributed.divergence import HARMFUL, HARMLESS
from tests.pytorch.distributed.ranks import Ranks


@pytest.mark.parametrize("name", HARMFUL)
def test_ranks_that_differ_raise_alike(apart: Ranks, tmp_path: Path, name: str) -> None:
    apart.check("differs", name, str(tmp_path / "store"))


@pytest.mark.parametrize("name", HARMLESS)
def test_what_changes_no_collective_is_no_error(apart: Ranks, tmp_path: Path, name: str) -> None:
    apart.check("agrees", name, str(tmp_path / "store"))
