"""What Stator raises (`exceptions`) and the catalogue of graph breaks (one class each)."""

from stator.errors import breaks
from stator.errors.breaks import *  # noqa: F403  all kinds of graph breaks, which their pages list
from stator.errors.catalogue import RETIRED, Break, kind, kinds, page
from stator.errors.exceptions import (
    BackendError,
    ConfigError,
    ConstraintViolationError,
    GraphBreakError,
    InternalError,
    RankDivergenceError,
    RecompileError,
    RecompileLimitError,
    StatorError,
    UnknownBackendError,
)

__all__ = [
    "RETIRED",
    "BackendError",
    "Break",
    "ConfigError",
    "ConstraintViolationError",
    "GraphBreakError",
    "InternalError",
    "RankDivergenceError",
    "RecompileError",
    "RecompileLimitError",
    "StatorError",
    "UnknownBackendError",
    "kind",
    "kinds",
    "page",
]
__all__ += breaks.__all__
