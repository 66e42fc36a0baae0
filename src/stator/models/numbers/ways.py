"""What drawn numbers decide: one decision is guarded, of more the graph breaks at each.

if random.random() < 0.5: …         an entry for each outcome
for image in images:                one for each combination of them would be as many as 2 ** len(images): so what
    if random.random() < 0.5: …     is between two decisions is traced once for each outcome of the first
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING

from stator.space.signals import DoFirst

if TYPE_CHECKING:
    from stator.space.host_types import Host
    from stator.space.interfaces import Trace

__all__ = ["are_alike", "are_known", "breaks_at_calls", "may_assume"]

#: in `Trace.region_state`: that code is broken where drawn numbers decide; and that it is at calls of functions of the
#: library that let them decide
_BREAKS = "drawn numbers decide"
_CALLS = "calls let drawn numbers decide"
#: there as well: that draws are to be known, as long as the generator is in the same state each time
_KNOWN = "draws are known"
#: more decisions than so many are never the same again, where the graph may not break
_MOST_IN_ONE_GRAPH = 64


#: objects that guards tell apart; of others they look at what the program uses
_SINGLE = (FunctionType, BuiltinFunctionType, MethodType, type, str, bytes, bool, type(None))


class _Decisions:
    """What drawn numbers have decided in one trace."""

    def __init__(self, trace: Trace) -> None:
        self.made: set[str] = set()


def may_assume(trace: Trace, condition: str, *, exactly: bool = False) -> bool:
    """Whether what a drawn number decides is guarded; if not, the graph breaks there.

    Args:
        condition: what is to be known.
        exactly: whether that is which float it is: it will hardly ever be the same again.
    """
    state, made = trace.region_state, trace.extension(_Decisions).made
    made.add(condition)
    if trace.compile_region.fullgraph:
        if len(made) > _MOST_IN_ONE_GRAPH:
            _begin_again(trace, _KNOWN)
        return len(made) <= _MOST_IN_ONE_GRAPH
    if exactly:
        return False
    if not state.get(_BREAKS) and len(made) == 1:
        return True
    _begin_again(trace, _BREAKS)
    if trace.frame.code.co_filename == random.__file__:
        _begin_again(trace, _CALLS)  # the program shall go on in its own code
    return False


def _begin_again(trace: Trace, what: str) -> None:
    """Trace the code otherwise from now on, if it has not been: begins again."""
    if not trace.region_state.get(what):
        trace.region_state[what] = True
        raise DoFirst(what)


def are_known(trace: Trace) -> bool:
    """Whether what is drawn is to be known, where the state of the generator is the same each time."""
    return bool(trace.region_state.get(_KNOWN))


def breaks_at_calls(trace: Trace) -> bool:
    """Whether calls of the library's functions that decide by what they draw are left to Python."""
    return bool(trace.region_state.get(_CALLS))


def are_alike(container: Host) -> bool:
    """Whether one entry may be for any item of an existing container."""
    items = list(container.values() if isinstance(container, Mapping) else container)
    return len(set(map(type, items))) == 1 and not isinstance(items[0], _SINGLE)
