"""`TORCH_LOGS=graph_breaks,recompiles`: Stator's go to torch's loggers of that name, where they are on."""

from __future__ import annotations

import logging
import sys
from typing import Any

__all__ = ["say_break", "say_recompile"]


def say_break(where: str, code: str, reason: str) -> None:
    """A graph has been broken."""
    logger = _logger("graph_breaks")
    if logger is not None:
        logger.debug("Graph break in user code at %s\n%s: %s (more: stator why %s)", where, code, reason, code)


def say_recompile(where: str, reason: str) -> None:
    """A frame is compiled again."""
    logger = _logger("recompiles")
    if logger is not None:
        text = "Recompiling function %s\n    triggered by the following guard failure(s):\n    - %s"
        logger.debug(text, where, reason)


def _logger(artifact: str) -> logging.Logger | None:
    """Torch's logger for something that users can switch on by name; None while it is off, or without torch."""
    state: Any = getattr(sys.modules.get("torch._logging._internal"), "log_state", None)
    if state is None or not state.is_artifact_enabled(artifact):
        return None
    logger: logging.Logger = sys.modules["torch._logging._internal"].getArtifactLogger("torch._dynamo.stator", artifact)
    return logger
