"""What a program of apptests can say about itself."""

from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])


def expected_break(reason: str) -> Callable[[F], F]:
    """The program is known to break the graph, for this reason; it must still come out right with breaks.

    The day it is captured whole, its fullgraph run fails as an unexpected pass, and the mark is to be removed.
    """

    def mark(function: F) -> F:
        function.expected_break = reason  # type: ignore[attr-defined]
        return function

    return mark
