"""Compile regions that are kept for others when what `compile()` gave has gone, till the next full collection.

    for x in batches:
        stator.compile(lambda x: model(x))(x)  # one trace: the lambda goes with its round, its entries don't

Entries hold what their guards and their residual programs name: functions, classes, globals. A program that has gone
must be able to take those with it, so the regions are let go when Python begins a full collection (`gc.collect()`, or
its own accord): what nothing else holds then is collected as if nobody had kept it.
"""

from __future__ import annotations

from stator.host import collector

#: so many at most, for programs that collect nothing: those used longest ago go first
_MOST = 256

_KEPT: dict[object, None] = {}


def keep(compile_region: object) -> None:
    """The compile region has an entry that others may use."""
    collector.before_full(forget)
    _KEPT.pop(compile_region, None)
    _KEPT[compile_region] = None
    if len(_KEPT) > _MOST:
        _KEPT.pop(next(iter(_KEPT)), None)


def forget() -> None:
    """Keep none any longer."""
    _KEPT.clear()
