"""Stator: a just-in-time tracer for PyTorch programs."""

from stator.support import require

require()  # before what an unsupported interpreter would stumble over

from stator import config, testing
from stator.api import compile, generated_source, install, list_backends, reset, stats, substitute_in_graph, uninstall
from stator.errors.exceptions import (
    BackendError,
    ConfigError,
    GraphBreakError,
    InternalError,
    RecompileLimitError,
    StatorError,
)
from stator.leaf import leaf_function
from stator.marks import (
    allow_in_graph,
    assume_constant_result,
    disable,
    graph_break,
    is_compiling,
)
from stator.report.stats import Stats
from stator.stance import set_stance
from stator.tensor_marks import mark_dynamic, mark_static, mark_unbacked
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
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "config",
    "disable",
    "generated_source",
    "graph_break",
    "install",
    "is_compiling",
    "leaf_function",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_unbacked",
    "reset",
    "set_stance",
    "stats",
    "substitute_in_graph",
    "testing",
    "uninstall",
]
