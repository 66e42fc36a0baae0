"""`Py_ReprEnter`: the containers whose `repr` is being made, so that one that holds itself prints as `...`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.objects.value import Value
    from stator.trace import Trace


class Reprs:
    """The values whose `repr` is being made in a trace, by id."""

    def __init__(self, trace: Trace) -> None:
        self.active: set[int] = set()


@contextmanager
def entered(space: Space, value: Value) -> Iterator[bool]:
    """Enter the `repr` of a container; gives whether it was entered already."""
    active = space.trace.extension(Reprs).active
    if id(value) in active:
        yield True
        return
    active.add(id(value))
    try:
        yield False
    finally:
        active.discard(id(value))


def repr_text(space: Space, value: Value) -> str:
    """`repr(value)` as host text."""
    from stator.stdlib.repr_ import repr_of

    return space.str_(repr_of(space, value))
