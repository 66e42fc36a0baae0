"""`torch._dynamo.config` and `torch.compiler.config`, read at every compile: they are heeded, or said not to be."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from stator.controls.table import COMPILER, DYNAMO, Honoured, Irrelevant, Options

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
    changes: dict[str, Any] = {}
    for name, options in _MODULES.items():
        module = sys.modules.get(name)
        absent = module is None or _is_being_imported(module)
        changes |= _of_environment(options) if absent else _of_module(name, module, options)
    changes = {name: value for name, value in changes.items() if name not in given}
    return config.replace(**changes) if changes else config


_MODULES = {"torch._dynamo.config": DYNAMO, "torch.compiler.config": COMPILER}


def _is_being_imported(module: Any) -> bool:
    """Whether the module has yet to put values in the place of what it says of its options."""
    return bool(getattr(getattr(module, "__spec__", None), "_initializing", False))


def _of_module(module_name: str, module: Any, options: Options) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name, row in options.items():
        if isinstance(row, Irrelevant):
            continue
        value = getattr(module, name, row.default)
        differs = value != row.default
        if isinstance(row, Honoured) and (differs or _has_been_set(module, name, row)):
            changes[row.option] = row.of(value)
        instead = row.but if isinstance(row, Honoured) else row.instead
        if differs and instead:
            warn_once(f"{module_name}.{name} = {value!r} is not honoured by Stator: {instead}")
    return changes


def _has_been_set(module: Any, name: str, row: Honoured) -> bool:
    """Whether somebody has set an option, and not torch itself, which has since put it back."""
    untouched: Any = getattr(module, "_is_default", None)
    if not row.restored or untouched is None or untouched(name):
        return False
    return all(untouched(other) for other in row.restored)


def _of_environment(options: Options) -> dict[str, Any]:
    """What torch's module would have, were it imported."""
    rows = [row for row in options.values() if isinstance(row, Honoured) and row.variable in os.environ]
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
