"""`Py_ReprEnter`: the containers whose `repr` is being made, so that one that holds itself prints as `...`.

And `Py_EnterRecursiveCall`: up to 3.11 C code that calls itself counts against the program's limit, later against one
of its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import NoneType
from typing import TYPE_CHECKING, Any, TypeVar

from stator._core import C_RECURSION_LIMIT
from stator.host.version_facts import C_STACK_IS_MEASURED
from stator.space.deferred import DeferredStr, concatenated
from stator.space.host_types import Host
from stator.space.signals import NearRecursionLimit
from stator.space.value import NotKnown, Value

if TYPE_CHECKING:
    from stator.space.interfaces import Trace
    from stator.space.space import Space


T = TypeVar("T")
V = TypeVar("V", bound=Any)

#: how many items taken out of an iterator a nested call is worth, by the time that it takes to trace
_COST = 5

#: where `PyObject_Repr` says that it has met the limit
IN_REPR = " while getting the repr of an object"


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


def _check_depth(space: Space, depth: int, where: str) -> None:
    left = C_RECURSION_LIMIT or space.trace.calls.recursion_limit - space.trace.calls.depth
    if depth > left:
        raise _too_deep(space, where)


def _too_deep(space: Space, where: str) -> BaseException:
    if C_STACK_IS_MEASURED:
        return NearRecursionLimit()  # where that is so deep shows only when it runs
    return space.error(RecursionError, f"maximum recursion depth exceeded{where}")


class Nesting:
    """How deep C code has called itself in a trace."""

    def __init__(self, trace: Trace) -> None:
        self.depth = 0


@contextmanager
def nested(space: Space, where: str) -> Iterator[None]:
    """What is between `Py_EnterRecursiveCall(where)` and `Py_LeaveRecursiveCall()`."""
    nesting = space.trace.extension(Nesting)
    nesting.depth += 1
    space.trace.stops.count_item(_COST)
    try:
        _check_depth(space, nesting.depth, where)
        yield
    finally:
        nesting.depth -= 1


class Comparisons:
    """The pairs of containers that are being compared, with the state in which that began."""

    def __init__(self, trace: Trace) -> None:
        self.begun: dict[tuple[int, int], tuple[int, int]] = {}


def compared(space: Space, left: Value, right: Value, call: Callable[[], T]) -> T:
    """Compare two containers; where C code comes back to the same pair, and nothing has changed, it never ends."""
    begun = space.trace.extension(Comparisons).begun
    pair = id(left), id(right)
    outer, state = begun.get(pair), (space.trace.mutation_count, id(space.trace.frame))
    if outer == state:
        raise _too_deep(space, " in comparison")
    begun[pair] = state
    try:
        return call()
    finally:
        if outer is None:
            del begun[pair]
        else:
            begun[pair] = outer


def acyclic(method: Callable[[V, Space], T]) -> Callable[[V, Space], T]:
    """Decorates what gives the host object of a container by those of its items: it is not known if it holds itself."""

    @functools.wraps(method)
    def guarded(self: V, space: Space) -> T:
        if self._busy:
            raise NotKnown(self)
        self._busy = True
        try:
            return method(self, space)
        finally:
            self._busy = False

    return guarded


def repr_piece(space: Space, value: Value) -> str | DeferredStr:
    """`repr(value)` as a piece of a longer text."""
    value = value.force()
    if value.constant and _is_short(value.host):
        return repr(value.host)  # long containers are shown: the call of `repr` is spared
    shown = space.repr(value).force()
    return shown if isinstance(shown, DeferredStr) else space.str_(shown)


def list_pieces(space: Space, items: list[Value]) -> list[str | DeferredStr]:
    """What is between the brackets in the `repr` of a list that is made of the items to show them."""
    with nested(space, IN_REPR):
        return [repr_piece(space, item) for item in items]


def enumeration(opening: str, pieces: Iterable[str | DeferredStr], closing: str) -> Value:
    """The text `opening piece, piece, … closing`."""
    parts: list[str | DeferredStr] = []
    for piece in pieces:
        parts += (", ", piece)
    return concatenated(opening, *parts[1:], closing)


def _is_short(host: Host) -> bool:
    """A number or None; a long int's `repr` may be refused."""
    kind = type(host)
    return kind in (bool, float, NoneType) or (kind is int and host.bit_length() < 1000)
