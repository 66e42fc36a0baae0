"""What each guard of a program costs at a call, measured with the arguments that it was made for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from stator._core import OPERATIONS

if TYPE_CHECKING:
    from stator.guards.program import GuardProgram

__all__ = ["guard_costs"]

_CHECKS = frozenset(name for name, (is_check, *_) in OPERATIONS.items() if is_check)


def guard_costs(program: GuardProgram, function: object, args: Sequence[object]) -> tuple[int, ...]:
    """Nanoseconds that each guard's check takes, with the loads that are made for it first; () if one fails.

    They are those of a walk over the program; a shortcut takes less (docs/guards.md).
    """
    times = program.times(function, tuple(args)) or ()
    costs: list[int] = []
    loading = 0
    for instruction, time in zip(program.instructions, times):
        loading += time
        if instruction[0] in _CHECKS:
            costs.append(loading)
            loading = 0
    return tuple(costs)
