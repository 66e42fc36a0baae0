"""What a random number generator draws, without having drawn it: a copy makes the draws while guards are checked."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TypeAlias

from stator.guards.interned import Interned
from stator.space.host_types import Host

__all__ = ["MOST_DRAWS", "Draw", "LastDraw"]

#: a method of a generator, and what it is given
Draw: TypeAlias = tuple[Callable[..., float], tuple[Host, ...]]
#: more draws from one generator break the graph: each is made by a copy that makes all before it
MOST_DRAWS = 16


class LastDraw(Interned):
    """What a generator draws last, if it makes these draws."""

    def __init__(self, draws: tuple[Draw, ...]) -> None:
        self.draws = draws

    @abstractmethod
    def copied(self, generator: Host) -> Host:
        """A generator in the same state."""

    def __call__(self, generator: Host) -> float:
        copy = self.copied(generator)
        return [method(copy, *args) for method, args in self.draws][-1]
