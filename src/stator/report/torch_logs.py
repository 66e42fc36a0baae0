"""`TORCH_LOGS=graph_breaks,recompiles`: what Stator does goes to torch's loggers of that name, where they are on."""

from __future__ import annotations

import logging
import sys
from typing import Any

from stator.report.artifacts import Teller
from stator.report.events import Broke
from stator.report.stats import RecompileRecord
from stator.space.host_types import Host

__all__ = ["TorchLogs"]

_MODULE = "torch._logging._internal"


class TorchLogs(Teller):
    """Listens always, as torch's loggers are switched on at any time; torch is not imported for it."""

    def length(self, artifact: str) -> int | None:
        state: Any = getattr(sys.modules.get(_MODULE), "log_state", None)
        return 0 if state is not None and state.is_artifact_enabled(artifact) else None

    def write(self, artifact: str, event: Host, text: str) -> None:
        logger: logging.Logger = sys.modules[_MODULE].getArtifactLogger("torch._dynamo.stator", artifact)
        logger.debug("%s%s", _TITLES.get(artifact, _untitled)(event), text)


def _break_title(event: Broke) -> str:
    return f"Graph break in user code at {event.where}\n"


def _recompile_title(record: RecompileRecord) -> str:
    return f"Recompiling function {record.where}\n    triggered by the following guard failure(s):\n"


def _untitled(event: Host) -> str:
    return ""


#: how torch's own begin, for who looks for that
_TITLES: dict[str, Any] = {"graph_breaks": _break_title, "recompiles": _recompile_title}
