"""Which objects made by the traced program are certainly alive.

When an object dies is not traced. What a variable or the value stack of a running frame leads to cannot have died,
though, and that answers most programs that look: `Value.held` says what an object keeps alive.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.objects.value import Value

__all__ = ["is_alive"]


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
