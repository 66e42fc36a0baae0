"""Warnings are written once: by the program's handlers where it has any, else to stderr."""

from __future__ import annotations

import io
import logging

import pytest

from stator.host.loggers import UnlessConfigured


@pytest.mark.parametrize("where", ["root", "itself", "nowhere", "where nothing goes"])
def test_what_is_told_is_written_once(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    logger = logging.getLogger("stator.tests.loggers")
    monkeypatch.setattr(logging.root, "handlers", [])  # pytest has put its own there
    own, programs = io.StringIO(), io.StringIO()
    monkeypatch.setattr(logger, "handlers", [UnlessConfigured(own)])
    monkeypatch.setattr(logger, "propagate", where != "where nothing goes")
    monkeypatch.setattr(logging.getLogger("stator"), "handlers", [])
    if where != "nowhere":
        (logger if where == "itself" else logging.root).addHandler(logging.StreamHandler(programs))
    logger.warning("told")
    assert (own.getvalue(), programs.getvalue()) == (("", "told\n") if where in ("root", "itself") else ("told\n", ""))
