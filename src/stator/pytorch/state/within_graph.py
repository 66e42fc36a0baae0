"""What a program enters that no graph may end in: a level of forward-mode differentiation, hooks on what is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from stator.space.signals import Restart

if TYPE_CHECKING:
    from collections.abc import Callable

    from stator.errors import Break
    from stator.space.interfaces import Trace

__all__ = ["WithinGraph"]


class WithinGraph:
    """One of them, in `State.open` while it is entered: a trace that ends in it is made again, and breaks before it.

    Args:
        refusal: the break where it is entered.
        leave: what leaves it when the trace has been given up.
    """

    def __init__(self, trace: Trace, refusal: Break, leave: Callable[[], object]) -> None:
        self.step = trace.steps
        self.refusal = refusal
        self.leave_for_real = leave

    @property
    def lazy(self) -> NoReturn:
        """The trace is over, and code is generated that would enter it again."""
        self.leaving()

    def leaving(self) -> NoReturn:
        """The trace is over."""
        raise Restart(self.step, self.refusal)
