"""The space of a trace, put together from its parts."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stator.objects.attr_dict import AttrDict
from stator.objects.attributes import Attributes
from stator.objects.calls import Calls
from stator.objects.iteration import Iteration
from stator.objects.keys import note_unlike, traced_key
from stator.objects.operators import Operators
from stator.objects.text import Text
from stator.objects.wrapping import Wrapping

if TYPE_CHECKING:
    from stator.objects.interfaces import Trace
    from stator.objects.value import ObjectValue, Value


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

    def traced_key(self, value: Value) -> Any:
        """The key of a value in a host dict or set that stands for a traced one."""
        return traced_key(self, value)

    def note_unlike(self, cls: type) -> None:
        """A number of a type that is not to be compared with others as a key is one."""
        note_unlike(self, cls)

    def own_attr_dict(self, value: ObjectValue) -> Any:
        """The attributes of an object of a class that has given it a `__dict__`."""
        return AttrDict(value, None if value.source is None else value.host)

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
