"""threading.local: the attributes are items of a dict that each thread has of its own, which is a source."""

from __future__ import annotations

import _thread
from typing import Any

from stator import errors
from stator.guards.source import CallSource, Source
from stator.models.classes.instance import InstanceValue
from stator.space.attributes import attribute_name
from stator.space.host_types import Host
from stator.space.protocol import NONE, models
from stator.space.space import Space
from stator.space.value import Constant, ObjectValue, Unsupported, Value


@models(_thread._local)
class ThreadLocal(ObjectValue):
    """An existing object of the very class: one that derives from it runs its `__init__` anew in each thread."""

    __slots__ = ("attributes",)

    def __init__(self, attributes: Value) -> None:
        super().__init__(_thread._local)
        self.attributes = attributes

    @classmethod
    def from_host(cls, space: Space, host: Host, source: Source) -> Value:
        if space.guard_type(host, source) is not _thread._local:
            return InstanceValue.from_host(space, host, source)
        self = cls(space.wrap(_attributes(host), CallSource(_attributes, source, "vars")))
        self.host, self.source = host, source
        return self

    def _own(self, space: Space, name: Value) -> Constant:
        """A name that the class has no attribute of."""
        text = attribute_name(space, name)
        if text == "__dict__" or space.lookup(self.cls, text) is not None:
            raise Unsupported(errors.UnsupportedAttribute("_local", text))
        return Constant(text)

    def _present(self, space: Space, key: Constant) -> None:
        if not space.truth(space.contains(self.attributes, key)):
            raise space.error(AttributeError, f"'_thread._local' object has no attribute '{key.host}'")

    def tp_getattribute(self, space: Space, name: Value, /) -> Value:
        text = attribute_name(space, name)
        if text == "__dict__":
            return self.attributes
        if space.lookup(self.cls, text) is not None:
            return space.generic_getattr(self, text)
        key = Constant(text)
        self._present(space, key)
        return space.getitem(self.attributes, key)

    def tp_setattr(self, space: Space, name: Value, value: Value, /) -> Value:
        space.setitem(self.attributes, self._own(space, name), value)
        return NONE

    def tp_delattr(self, space: Space, name: Value, /) -> Value:
        key = self._own(space, name)
        self._present(space, key)
        space.delitem(self.attributes, key)
        return NONE


def _attributes(local: Any) -> dict[str, Host]:
    """The dict of the calling thread."""
    found: dict[str, Host] = local.__dict__
    return found
