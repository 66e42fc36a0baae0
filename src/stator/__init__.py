"""Stator: a just-in-time tracer for PyTorch programs."""

from stator.host.support import require

#: the build reads it from the source, without importing the package
__version__ = "0.1.0.dev0"

require()  # before what an unsupported interpreter would stumble over

from stator import config, testing
from stator.api.compile import (
    compile,
    generated_source,
    install,
    list_backends,
    reset,
    stats,
    substitute_in_graph,
    uninstall,
)
from stator.api.debug_prints import debug_grad_log, install_debug_prints, print
from stator.api.explain import explain, trace
from stator.api.leaf import leaf_function
from stator.errors.exceptions import (
    BackendError,
    ConfigError,
    ConstraintViolationError,
    GraphBreakError,
    InternalError,
    RankDivergenceError,
    RecompileLimitError,
    StatorError,
)
from stator.marks.dims import mark_dynamic, mark_static, mark_unbacked, maybe_mark_dynamic
from stator.marks.functions import (
    allow_in_graph,
    assume_constant_result,
    disable,
    graph_break,
    is_compiling,
)
from stator.marks.stance import set_stance
from stator.report.logs import set_logs
from stator.report.stats import Stats

__all__ = [
    "BackendError",
    "ConfigError",
    "ConstraintViolationError",
    "GraphBreakError",
    "InternalError",
    "RankDivergenceError",
    "RecompileLimitError",
    "StatorError",
    "Stats",
    "__version__",
    "allow_in_graph",
    "assume_constant_result",
    "compile",
    "config",
    "debug_grad_log",
    "disable",
    "explain",
    "generated_source",
    "graph_break",
    "install",
    "install_debug_prints",
    "is_compiling",
    "leaf_function",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_unbacked",
    "maybe_mark_dynamic",
    "print",
    "reset",
    "set_logs",
    "set_stance",
    "stats",
    "substitute_in_graph",
    "testing",
    "trace",
    "uninstall",
]
