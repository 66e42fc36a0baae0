"""`Py_ReprEnter`: the containers whose `repr` is being made, so that one that holds itself prints as `...`.

And up to 3.11 `Py_EnterRecursiveCall`: there C code that calls itself counts against the program's limit.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import NoneType
from typing import TYPE_CHECKING, Any

from stator.objects.value import Constant, Value

if TYPE_CHECKING:
    from stator.objects.space import Space
    from stator.trace import Trace


_C_CALLS_COUNT = sys.version_info < (3, 12)


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
    if _C_CALLS_COUNT and space.trace.depth + len(active) > space.trace.recursion_limit:
        raise space.error(RecursionError, "maximum recursion depth exceeded while getting the repr of an object")
    active.add(id(value))
    try:
        yield False
    finally:
        active.discard(id(value))


def repr_text(space: Space, value: Value) -> str:
    """`repr(value)` as host text."""
    from stator.stdlib.repr_ import repr_of

    value = value.force()
    if type(value) is Constant and _is_short(value.host):
        return repr(value.host)  # long containers are shown: the call of `repr` is spared
    return space.str_(repr_of(space, value))


def _is_short(host: Any) -> bool:
    """A number or None; a long int's `repr` may be refused."""
    kind = type(host)
    return kind in (bool, float, NoneType) or (kind is int and host.bit_length() < 1000)
