"""`STATOR_LOGS=graph_breaks,+guards` and `stator.set_logs()`: what is on goes to the loggers `stator.<artifact>`.

While nothing is on nobody listens, and it costs nothing.
"""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Mapping

from stator.errors.exceptions import ConfigError
from stator.report.artifacts import ARTIFACTS, LESS, MORE, Teller
from stator.report.events import EVENTS
from stator.report.torch_logs import TorchLogs
from stator.space.host_types import Host

__all__ = ["set_logs"]

_SIGNS = {"+": MORE, "-": LESS}
_VARIABLE = "STATOR_LOGS"


class Logs(Teller):
    """Writes artifacts to the loggers of their names."""

    def __init__(self, on: Mapping[str, int]) -> None:
        super().__init__()
        self._on = on

    @property
    def on(self) -> Mapping[str, int]:
        """What it writes, by name, and how much of it."""
        return self._on

    def length(self, artifact: str) -> int | None:
        on = artifact in self._on and logging.getLogger(f"stator.{artifact}").isEnabledFor(logging.INFO)
        return self._on[artifact] if on else None

    def write(self, artifact: str, event: Host, text: str) -> None:
        logging.getLogger(f"stator.{artifact}").info("[%s] %s", artifact, text)


def set_logs(*, all: bool | int = False, **artifacts: bool | int) -> None:
    """Show what Stator does, through `logging`; like `torch._logging.set_logs`, it replaces what was set before.

    Args:
        all: for all artifacts that are not named.
        artifacts: `graph_breaks`, `recompiles`, `guards`, `graph`, `graph_code`, `graph_sizes`, `bytecode`, `residual`,
            `trace`: True, or `logging.DEBUG` for more detail, `logging.WARNING` or above for less.

    Raises:
        ConfigError: an artifact that there is not, or a value that is no level.

    Example:
        >>> stator.set_logs(graph_breaks=True, guards=logging.DEBUG)
    """
    levels: dict[str, bool | int] = {**dict.fromkeys(ARTIFACTS, all), **artifacts}
    _listen({_known(name, "set_logs()"): _length(name, level) for name, level in levels.items() if level is not False})


def from_environment(environ: Mapping[str, str]) -> None:
    """Do what STATOR_LOGS asks for: names with commas between, each perhaps with `+` or `-` before it."""
    on: dict[str, int] = {}
    for word in filter(None, "".join(environ.get(_VARIABLE, "").split()).split(",")):
        name = word.lstrip("+-")
        names = ARTIFACTS if name == "all" else [_known(name, f"{_VARIABLE}={environ[_VARIABLE]}")]
        on.update(dict.fromkeys(names, _SIGNS.get(word[0], 0)))
    if on:
        _listen(on)


def _listen(on: Mapping[str, int]) -> None:
    before = [listener for listener in EVENTS.all if type(listener) is Logs]
    others = [listener for listener in EVENTS.all if listener not in before]
    for name in {name for listener in before for name in listener.on}:
        logging.getLogger(f"stator.{name}").setLevel(logging.NOTSET)
    for name in on:
        logging.getLogger(f"stator.{name}").setLevel(logging.INFO)
    EVENTS.all = (*others, Logs(on)) if on else tuple(others)


def _known(name: str, where: str) -> str:
    if name in ARTIFACTS:
        return name
    close = difflib.get_close_matches(name, ARTIFACTS, n=1)
    advice = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(ARTIFACTS)}"
    raise ConfigError(f"{where}: unknown artifact {name!r}; {advice}")


def _length(name: str, level: bool | int) -> int:
    if type(level) not in (bool, int):
        raise ConfigError(f"set_logs({name}={level!r}): True, False or a level of logging is wanted")
    if level is True or level == logging.INFO:
        return 0
    return MORE if level < logging.INFO else LESS


EVENTS.all += (TorchLogs(),)
from_environment(os.environ)
