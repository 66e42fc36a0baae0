"""Stator tracing one test method of CPython's suite with the backend `eager`, for the ruler `conformance`."""

import os
import traceback
from collections.abc import Callable
from types import CodeType
from typing import Any

import stator

name = f"stator {stator.__version__}"
PACKAGE = os.path.dirname(stator.__file__)


def compile_fullgraph(fn: Callable) -> Callable:
    return stator.compile(fn, backend="eager", fullgraph=True)


def compile_with_breaks(fn: Callable) -> Callable:
    return stator.compile(fn, backend="eager")


def reset() -> None:
    stator.reset()


def evidence() -> set[CodeType]:
    """Code objects of user frames that were traced to the end since the last reset."""
    return set(stator.testing.compiled_code_objects())


def explain(error: BaseException) -> dict[str, Any] | None:
    """What Stator says with this exception; None where it is the program's own."""
    if isinstance(error, stator.GraphBreakError):
        detail = str(error).splitlines()[0]
        return {"kind": "graph_break", "reason": error.reason, "id": error.code, "detail": detail, "where": error.where}
    if isinstance(error, stator.StatorError):
        return internal(type(error).__name__, error)
    # Another exception raised by Stator's own code is a defect, not the program's exception.
    last = traceback.extract_tb(error.__traceback__)[-1:]
    if last and last[0].filename.startswith(PACKAGE):
        return internal(f"{type(error).__name__} inside stator", error)
    return None


def internal(reason: str, error: BaseException) -> dict[str, Any]:
    return {"kind": "internal", "reason": reason, "detail": str(error)}
