"""Objects that a cached function has given: others that call it get the very same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator import errors
from stator.space.signals import Restart

if TYPE_CHECKING:
    from stator.space.interfaces import Trace
    from stator.space.value import Value


class CachedResults:
    """The fresh objects of one trace that stand for what is in a cache, or will be."""

    def __init__(self, trace: Trace) -> None:
        self._space = trace.space
        #: id → the object, the step that made it, the function's name
        self._found: dict[int, tuple[Value, int, str]] = {}

    def add(self, value: Value, step: int, function: str) -> None:
        """The object was given by the function at that step."""
        self._found[id(value)] = value, step, function
        self._space.has_cached_results = True

    def keep(self, value: Value) -> None:
        """An object is to be changed or handed out: one that others have too must then be the real one."""
        found = self._found.get(id(value))
        if found is not None:
            raise Restart(found[1], errors.CachedFunction(found[2], "gives a result that is changed or kept"))
