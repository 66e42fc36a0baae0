"""What a program of apptests can say about itself."""

import sys
from collections.abc import Callable
from typing import TypeVar

F = TypeVar("F", bound=Callable[..., object])


def expected_break(reason: str, since: tuple[int, int] = (3, 11)) -> Callable[[F], F]:
    """The program is known to break the graph, for this reason; it must still come out right with breaks.

    `since`: the first version of Python on which it does.

    The day it is captured whole, its fullgraph run fails as an unexpected pass, and the mark is to be removed.
    """

    def mark(function: F) -> F:
        if sys.version_info >= since:
            function.expected_break = reason  # type: ignore[attr-defined]
        return function

    return mark
