"""`torch._dynamo.config`, read at every compile: what a program sets there, Stator heeds or says that it does not."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from stator.controls.table import HONOURED, WARNED

if TYPE_CHECKING:
    from stator.config import Config

__all__ = ["disabled_by_environment", "under_torchs", "warn_once"]

_LOG = logging.getLogger("stator")
_said: set[str] = set()


def under_torchs(config: Config, given: Collection[str]) -> Config:
    """The settings with what torch's configuration says otherwise than by default.

    Args:
        config: Stator's own settings.
        given: the names of options that the compile() call has set: they stay.
    """
    changes = _of_module() if "torch._dynamo.config" in sys.modules else _of_environment()
    changes = {name: value for name, value in changes.items() if name not in given}
    return config.replace(**changes) if changes else config


def _of_module() -> dict[str, Any]:
    module = sys.modules["torch._dynamo.config"]
    changes: dict[str, Any] = {}
    for name, row in HONOURED.items():
        value = getattr(module, name, row.default)
        if value != row.default:
            # A limit is any number for torch: with none at all, nothing is compiled again.
            changes[row.option] = max(value, 1) if type(value) is int else type(row.default)(value)
    for name, warned in WARNED.items():
        value = getattr(module, name, warned.default)
        if value != warned.default:
            warn_once(f"torch._dynamo.config.{name} = {value!r} is not honoured by Stator: {warned.instead}")
    return changes


def _of_environment() -> dict[str, Any]:
    """What torch._dynamo.config would be, were it imported."""
    rows = [row for row in HONOURED.values() if row.variable in os.environ]
    values = {row.option: row.parse(os.environ[row.variable]) for row in rows}
    defaults = {row.option: row.default for row in rows}
    return {option: value for option, value in values.items() if value != defaults[option]}


def disabled_by_environment() -> bool:
    """Whether the user has asked that compile() returns what it is given."""
    return os.environ.get("TORCHDYNAMO_DISABLE") == "1"


def warn_once(text: str) -> None:
    """Say something to the user, once a process."""
    if text not in _said:
        _said.add(text)
        _LOG.warning("%s", text)
