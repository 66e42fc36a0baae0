"""The space of a trace, put together from its parts."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from stator.objects.attributes import Attributes
from stator.objects.calls import Calls
from stator.objects.iteration import Iteration
from stator.objects.operators import Operators
from stator.objects.text import Text
from stator.objects.wrapping import Wrapping

if TYPE_CHECKING:
    from stator.objects.interfaces import Trace


class StandardSpace(Wrapping, Attributes, Operators, Iteration, Calls, Text):
    """The generic algorithms of the object space, over one trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self._lookups = {}
        self._mros = {}
        self._unmet_modules = {}
        self._class_values = {}
        self._by_id = {}
        self._kept = []
        self._unread = []

    def release(self) -> None:
        """The trace is over: let go of the host objects it looked at, without waiting for the garbage collector."""
        for value in self._by_id.values():
            for slot in ("host", "_attrs", "_shared", "dict_owner", "table"):
                with contextlib.suppress(AttributeError):
                    setattr(value, slot, None)
        for value in self._unread:
            value.host = None
        self._unread.clear()
        self._by_id.clear()
        self._kept.clear()
        self._lookups.clear()
        self._mros.clear()
        self._unmet_modules.clear()
        self._class_values.clear()
