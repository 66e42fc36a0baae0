"""Stator in its default configuration, for the rulers `zoo` and `overhead`."""

from collections.abc import Callable
from typing import Any

import stator

name = "stator"


def compile(fn: Callable, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = "eager") -> Callable:
    return stator.compile(fn, fullgraph=fullgraph, dynamic=dynamic, backend=backend)


def reset() -> None:
    stator.reset()


def stats() -> dict[str, Any]:
    """What happened since the last reset, by Stator's own word."""
    now = stator.stats()
    return {
        "graphs": now.graphs,
        "breaks": [broken(record) for record in now.breaks],
        "recompiles": [{"where": record.where, "reason": record.reason} for record in now.recompile_log],
        "trace_seconds": now.trace_seconds,
        "guards": [now.guards],
        "ops": now.ops,
        "backend_seconds": now.backend_seconds,
    }


def broken(record: Any) -> dict[str, Any]:
    # The ruler tells a break from a frame that was given up on; for Stator the code says which.
    kind = "frame skipped" if record.code == stator.errors.FrameGivenUp.code else "break"
    return {"kind": kind, "reason": f"{record.code} {record.reason}", "where": record.where, "count": record.count}
