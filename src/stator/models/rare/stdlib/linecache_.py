"""linecache: what only fills the cache of source lines is done when tracing; the program finds the cache filled."""

from __future__ import annotations

import linecache
from typing import Any

from stator.space.host_types import Host
from stator.space.operands import literal
from stator.space.protocol import register
from stator.space.space import Space
from stator.space.value import Value


def _filling(function: Host) -> None:
    """A function that looks into the cache: it finds the lines of a file that is there."""

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        name = args[0].force() if args else None
        cache: Any = space.existing(linecache.cache, "linecache.cache")
        if name is not None and literal(name) and not space.trace.effects.is_mutated(cache):
            path = name.as_host(space)
            # What has been looked up already must stay as it was.
            if isinstance(path, str) and not cache.table.is_known(path) and path not in linecache.cache:
                linecache.updatecache(path)
        return space.existing(function).inline(space, args, kwargs, False)  # type: ignore[attr-defined, no-any-return]

    register(function, model)


_filling(linecache.getlines)
_filling(linecache.lazycache)
