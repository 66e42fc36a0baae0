"""Stator: a just-in-time tracer for PyTorch programs."""

from stator import config, testing
from stator.api import compile, list_backends, reset, stats
from stator.errors.exceptions import (
    BackendError,
    ConfigError,
    GraphBreakError,
    InternalError,
    RecompileLimitError,
    StatorError,
)
from stator.marks import assume_constant_result, disable, graph_break, is_compiling, substitute_in_graph
from stator.report.stats import Stats
from stator.version import __version__

__all__ = [
    "BackendError",
    "ConfigError",
    "GraphBreakError",
    "InternalError",
    "RecompileLimitError",
    "StatorError",
    "Stats",
    "__version__",
    "assume_constant_result",
    "compile",
    "config",
    "disable",
    "graph_break",
    "is_compiling",
    "list_backends",
    "reset",
    "stats",
    "substitute_in_graph",
    "testing",
]
