"""Iterator types that say by `advance` how they go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stator.models.iterators.iterator import IteratorValue, iterator_type

if TYPE_CHECKING:
    from stator.space.space import Space
    from stator.space.value import Value

__all__ = ["Stream", "stream"]

stream = iterator_type


class Stream(IteratorValue):
    """An iterator; one that existed before the trace cannot be looked into."""

    __slots__ = ()

    def advance(self, space: Space) -> Value | None:
        """The next item, or None at the end."""
        raise NotImplementedError

    def produce(self, space: Space) -> Value | None:
        return self.advance(space)
