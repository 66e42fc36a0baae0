"""Which objects made by the traced program are certainly alive, and which are certainly dead.

When an object dies is not traced. What a variable or the value stack of a running frame leads to cannot have died,
though, and that answers most programs that look: `Value.held` says what an object keeps alive. And the tracer holds
whatever the program holds: an object whose value is gone is gone itself. Values in cycles go when the program calls
the collector, and not before, as its own objects do for certain.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.objects.value import Value

__all__ = ["WeakTarget", "is_alive"]


def is_alive(space: Space, value: Value) -> bool:
    """Whether a running frame leads to the object, by references that the trace has seen."""
    waiting: deque[Value] = deque()
    frame = space.trace.frame
    while frame is not None:
        waiting += [v for v in (*frame.locals.values(), *frame.stack, *frame.cells.values()) if v is not None]
        frame = frame.parent
    met: set[int] = set()
    while waiting:
        found = waiting.popleft()
        if found is value:
            return True
        if id(found) not in met:
            met.add(id(found))
            waiting.extend(found.held())
    return False


class WeakTarget:
    """What a weak reference leads to: an object that existed before, or one that the traced program has made."""

    __slots__ = ("_existing", "_made")

    def __init__(self, value: Value | None) -> None:
        new = value is not None and value.source is None
        self._made = weakref.ref(value) if value is not None and new else None
        self._existing = None if new else value

    def get(self) -> Value | None:
        """The object, or None if it is certainly dead."""
        return self._existing if self._made is None else self._made()
