"""What NumPy does about floating-point errors, as `np.errstate` says: whether a graph may do without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from stator.guards.guard import Predicate
from stator.guards.interned import Interned
from stator.guards.source import ConstSource
from stator.pytorch.numpy import float_flags
from stator.pytorch.numpy.array_calls import numpy_dtype
from stator.pytorch.numpy.error_check import ASSUMPTION
from stator.pytorch.reliance import is_doubted
from stator.pytorch.tensors.lowering import Call
from stator.pytorch.tensors.tensor import tensors_among
from stator.space.warning_trap import is_redirected, left_to_run_time, shows

if TYPE_CHECKING:
    from types import ModuleType

    from stator.pytorch.interfaces import Recorder
    from stator.pytorch.types import Host, Nested
    from stator.space.interfaces import Trace
    from stator.space.space import Space

__all__ = ["plan", "refuses_for_real"]

#: what NumPy does of its own, and calls nothing of the program's for
_PLAIN = frozenset({"ignore", "warn", "raise"})


def refuses_for_real(space: Space) -> str | None:
    """Why a function cannot run for real while tracing, or None."""
    return None if set(_modes(space).values()) <= _PLAIN else "floating-point errors call a function"


def _modes(space: Space) -> dict[str, str]:
    """What is done about the kinds of errors, under a guard."""
    modes: dict[str, str] = dict(np.geterr())  # type: ignore[arg-type]
    space.trace.guard(Predicate((ConstSource(np, "numpy"),), _Errors(tuple(modes.values())), f"np.geterr() == {modes}"))
    return modes


class _Errors(Interned):
    """Whether NumPy does these things about errors."""

    def __init__(self, modes: tuple[str, ...]) -> None:
        self.modes = modes

    def __call__(self, numpy: ModuleType) -> bool:
        return tuple(numpy.geterr().values()) == self.modes


def plan(space: Space, host: Host, name: str, call: Call, result: Nested) -> tuple[str, str | None]:
    """What tells of the errors of a call (see `float_flags`); or why it cannot be an operation of the graph."""
    modes = _modes(space)
    if set(modes.values()) == {"ignore"}:
        return float_flags.QUIET, None
    dtypes = [numpy_dtype(tensor.dtype) for tensor in tensors_among(call.operands)]
    kind = float_flags.kind_of(host, name, dtypes, result, call.kwargs)
    if kind is None or float_flags.too_big([call.args, call.kwargs], dtypes):
        kind = None
    elif kind == float_flags.QUIET:
        return kind, None
    if _are_ignored(space, modes):
        return float_flags.QUIET, None
    return kind or "", _refusal(space.trace, kind, modes)


def _are_ignored(space: Space, modes: dict[str, str]) -> bool:
    """Whether errors are only warned about, and the program ignores the warnings; guarded."""
    if not set(modes.values()) <= {"ignore", "warn"} or is_redirected(space) or shows(RuntimeWarning):
        return False
    left_to_run_time(space, {RuntimeWarning}, "NumPy")
    return True


def _refusal(trace: Trace, kind: str | None, modes: dict[str, str]) -> str | None:
    recorder: Recorder = trace.recorder
    if kind is None:
        return "nothing in its result tells whether it has met floating-point errors"
    if modes["under"] != "ignore":
        return "nothing in its result tells whether it has met an underflow"
    if is_doubted(trace, ASSUMPTION):
        return "floating-point errors have been met repeatedly"
    if not trace.root.repeatable or recorder.effects.acts or recorder.nodes.graph is not recorder.nodes.whole:
        return "it may meet floating-point errors where the frame cannot run again"
    return None
