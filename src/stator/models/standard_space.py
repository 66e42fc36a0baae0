"""The space of a trace, put together from its parts."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from stator.models.classes.attr_dict import AttrDict
from stator.models.functions.cell import CellValue
from stator.models.functions.module import ModuleValue
from stator.models.hostcalls.proxies import call_on_proxies
from stator.models.iterators.iterator import SequenceIterator
from stator.models.text.text_space import Text
from stator.space.attributes import Attributes
from stator.space.calls import Calls
from stator.space.identity.keys import note_unlike, traced_key
from stator.space.iteration import Iteration
from stator.space.operators import Operators
from stator.space.value import NotKnown
from stator.space.wrapping import Wrapping

if TYPE_CHECKING:
    import types

    from stator.guards.source import Source
    from stator.space.interfaces import Trace
    from stator.space.value import ObjectValue, Value


#: slots by which values refer to host objects, and to what refers to them
_REFERRING = ("host", "real", "_attrs", "_shared", "dict_owner", "table")
#: those of them that the values of a class have
_HOLDING: dict[type, list[str]] = {}


def _let_go(value: Value) -> None:
    """Empty the slots by which a value holds more than itself."""
    holding = _HOLDING.get(type(value))
    if holding is None:
        _HOLDING[type(value)] = [slot for slot in _REFERRING if _emptied(value, slot)]
        return
    for slot in holding:
        setattr(value, slot, None)


def _emptied(value: Value, slot: str) -> bool:
    with contextlib.suppress(AttributeError):
        setattr(value, slot, None)
        return True
    return False


class StandardSpace(Wrapping, Attributes, Operators, Iteration, Calls, Text):
    """The generic algorithms of the object space over one trace, and those steps of them that make a certain model."""

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

    def existing_cell(self, host: types.CellType, source: Source, contents: Source | None = None) -> CellValue:
        """The value of an existing closure cell."""
        known = self._by_id.get(id(host))
        if known is None:
            known = self._by_id[id(host)] = CellValue.from_host(self, host, source, contents)
            self._kept.append(host)
        return known

    def module_names(self, module: types.ModuleType) -> AttrDict:
        """The names in a module's globals."""
        return ModuleValue.unmet(self, module).attr_dict(self)  # type: ignore[no-any-return]

    def sequence_iterator(self, value: Value) -> Value:
        """The iterator over an object that has `__getitem__` and no `__iter__`."""
        return SequenceIterator(value)

    def call_on_proxies(self, host: Any, args: list[Value], kwargs: dict[str, Value] | None = None) -> Value | None:
        """Run a pure host function for real, on proxies for operands that are not known; None where unsound."""
        owner = getattr(host, "__objclass__", None) or getattr(host, "__self__", None)
        if isinstance(owner, type) and owner.__module__ != "builtins":
            return None  # others may ask for more than slots: a Decimal compares itself with any Rational
        try:
            result = call_on_proxies(self, host, args, kwargs or {})
        except NotKnown:
            return None
        return self.fresh(result)

    def release(self) -> None:
        """The trace is over: let go of the host objects it looked at, without waiting for the garbage collector."""
        for value in self._by_id.values():
            _let_go(value)
        for value in self._unread:
            value.host = None
        self._unread.clear()
        self._by_id.clear()
        self._kept.clear()
        self._lookups.clear()
        self._mros.clear()
        self._unmet_modules.clear()
        self._class_values.clear()
        self.compute = None
