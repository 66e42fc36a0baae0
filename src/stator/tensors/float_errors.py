"""What NumPy does about floating-point errors: `np.errstate`, `np.seterr`, and the filters that see its warnings.

Torch's functions tell of no division by zero. So the state is guarded, and where an error would be an exception, or
call the program, an operation is left to NumPy.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from stator.guards.guard import Predicate
from stator.guards.interned import Interned
from stator.guards.source import ConstSource

if TYPE_CHECKING:
    from stator.objects.space import Space

__all__ = ["refuses", "refuses_for_real"]

#: what NumPy does of its own, and calls nothing of the program's for
_PLAIN = frozenset({"ignore", "warn", "raise"})
#: comparisons and the like, which are right about every number
_EXACT = np.dtype(bool)


def refuses_for_real(space: Space) -> str | None:
    """Why a function cannot run for real while tracing, or None."""
    return None if _modes(space) <= _PLAIN else "floating-point errors call a function"


def refuses(space: Space, result: Any) -> str | None:
    """Why a function with a result like this cannot be an operation of the graph, or None."""
    if getattr(result, "dtype", None) == _EXACT:
        return None
    modes = _modes(space)
    if modes <= {"ignore"}:
        return None
    if not modes <= {"ignore", "warn"}:
        return "floating-point errors do not just warn"
    shown = _no_errors(warnings)
    if shown:
        origin = ConstSource(warnings, "warnings")
        space.trace.guard(Predicate((origin,), _no_errors, "RuntimeWarning is no error"))
    return None if shown else "warnings of floating-point errors are exceptions"


def _modes(space: Space) -> set[str]:
    """What is done about the kinds of errors, under a guard."""
    modes: dict[str, str] = dict(np.geterr())  # type: ignore[arg-type]
    space.trace.guard(Predicate((ConstSource(np, "numpy"),), _Errors(tuple(modes.values())), f"np.geterr() == {modes}"))
    return set(modes.values())


class _Errors(Interned):
    """Whether NumPy does these things about errors."""

    def __init__(self, modes: tuple[str, ...]) -> None:
        self.modes = modes

    def __call__(self, numpy: Any) -> bool:
        return tuple(numpy.geterr().values()) == self.modes


def _no_errors(module: Any) -> bool:
    return all(action != "error" or not issubclass(RuntimeWarning, kind) for action, _, kind, _, _ in module.filters)
