"""Where Stator's logger writes what the program has given no handler for."""

from __future__ import annotations

import logging

__all__ = ["UnlessConfigured"]


class UnlessConfigured(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes what no other handler is given: a program that has set up logging is told once, as it wants it."""

    def handle(self, record: logging.LogRecord) -> bool:
        """As any handler does, if it is the only one."""
        logger: logging.Logger | None = logging.getLogger(record.name)
        while logger is not None:
            if any(handler is not self for handler in logger.handlers):
                return False
            logger = logger.parent if logger.propagate else None
        return bool(super().handle(record))
