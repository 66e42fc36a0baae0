"""Objects that get their `__dict__` when it is asked for: functools.partial, exceptions."""

from __future__ import annotations

from typing import Any

from stator.guards.raw import lacks_dict
from stator.space.facts import answer
from stator.space.space import Space
from stator.space.value import ExtensibleValue

__all__ = ["LateDictValue"]


class LateDictValue(ExtensibleValue):
    """An object of such a type. Copies show whether the dict is there, so that nobody may make it by asking."""

    __slots__ = ("_had_dict",)

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        #: whether there was a `__dict__` before the trace asked for it
        self._had_dict = False

    def lacks_dict(self, space: Space) -> bool:
        return self.source is not None and self._attrs is None and lacks_dict(self.host)

    def attr_dict(self, space: Space) -> Any:
        if self._attrs is None:
            self._had_dict = self.source is not None and not lacks_dict(self.host)
        return super().attr_dict(space)

    def is_bare(self, space: Space) -> bool:
        """Whether the object has no `__dict__` yet, so that CPython sees through it."""
        if self.source is None or (self._attrs is not None and not self._had_dict):
            return self._attrs is None
        return bool(answer(space, self, lacks_dict, "lacks_dict"))
