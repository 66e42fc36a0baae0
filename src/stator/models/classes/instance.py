"""Instances: objects of the program's own classes, and of every type that has no better model."""

from __future__ import annotations

import contextlib
import enum
import keyword
import types
from collections.abc import Iterable
from typing import Any

from stator import errors
from stator.guards.raw import instance_dict, type_lookup
from stator.models.identity.weaklist import first_ref
from stator.space.attributes import MISSING, is_generic
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import check_kind, host_errors
from stator.space.protocol import models
from stator.space.space import Space
from stator.space.value import ExtensibleValue, Unsupported, Value


@models(object)
class InstanceValue(ExtensibleValue):
    """An object that is its class, an attribute dict, and `__slots__`.

    Existing objects of opaque C types are modelled by it too: they can be passed on and compared by identity.
    """

    __slots__ = ("class_set", "slots")

    def __init__(self, cls: type) -> None:
        super().__init__(cls)
        #: whether the traced program has assigned `__class__`
        self.class_set = False
        #: variables in `__slots__` that the traced program has set (or, with None, deleted), by their descriptor
        self.slots: dict[Host, Value | None] = {}

    @classmethod
    def from_fresh(cls, space: Space, host: Host) -> Value:
        """The result of a real computation: a member of an enumeration, or something nothing is known about."""
        if issubclass(type(host), enum.Enum):
            return space.existing(host)
        return super().from_fresh(space, host)

    def get_field(self, space: Space, name: str) -> Value | None:
        if name == "__weakref__" and self.source is None:
            return first_ref(space, self)
        if self.source is None or name == "__weakref__":
            raise Unsupported(errors.UnsupportedAttribute(self.cls.__name__, name))
        return None

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        if name != "__class__" or value is None:
            return False
        value = check_kind(space, value, type, "__class__ must be set to a class, not '%T' object")
        new: type = value.as_host(space)
        _check_layouts(space, self.cls, new)
        space.mark_mutated(self)
        self.cls = new
        self.class_set = True
        return True

    def held(self) -> Iterable[Value]:
        return held_attributes(self)

    # -- generated code ---------------------------------------------------------------------------------------------

    def shell(self, writer: Writer) -> str:
        return f"{writer.const(object)}.__new__({writer.const(self.cls)})"

    def rebuilt(self, writer: Writer) -> str:
        name: str = writer.early(self)
        fill(self, writer, name)
        return name

    def effects(self, writer: Writer) -> list[str]:
        lines = slot_effects(self, writer)
        if self.class_set:
            setter = f"{writer.const(object)}.__setattr__"
            lines.append(f"{setter}({writer.source(self.source)}, '__class__', {writer.const(self.cls)})")  # type: ignore[arg-type]
        return lines


def _check_layouts(space: Space, old: type, new: type) -> None:
    """`object_set_class` on an empty object: CPython words the TypeError."""
    if any(space.host_lookup(cls, "__del__") is not MISSING for cls in (old, new)):
        raise Unsupported(errors.UnsupportedMutation("setting '__class__'", f"a {old.__name__} object"))
    if any(vars(base).get("__slots__") for cls in (old, new) for base in cls.__mro__):
        # The slots of the one class hold what the slots of the other held.
        raise Unsupported(errors.UnsupportedMutation("setting '__class__'", f"a {old.__name__} object"))
    try:
        empty: Host = object.__new__(old)
    except TypeError:  # it has a layout of its own
        raise Unsupported(errors.UnsupportedMutation("setting '__class__'", f"a {old.__name__} object")) from None
    with host_errors(space, TypeError):
        object.__dict__["__class__"].__set__(empty, new)


def held_attributes(value: Any) -> list[Value]:
    """What an object keeps alive by its attributes and slots, as far as the trace has met them."""
    attrs = () if value._attrs is None else value._attrs.held()
    return [*attrs, *(item for item in value.slots.values() if item is not None)]


def dict_text(writer: Writer, cls: type, name: str) -> str:
    """The expression of an instance's own dict, past an overridden `__getattribute__` or `__dict__`."""
    own = type_lookup(cls, "__dict__")
    if is_generic(type_lookup(cls, "__getattribute__")) and type(own) in _DICT_SLOTS:
        return f"{name}.__dict__"
    return f"{writer.const(instance_dict)}({name})"


_DICT_SLOTS = (types.GetSetDescriptorType, types.MemberDescriptorType)


def fill(value: Any, writer: Writer, name: str) -> None:
    """Lines that give a fresh object its attributes and slots, past `__setattr__` and descriptors."""
    for descriptor, item in value.slots.items():
        if item is not None:
            writer.line(f"{slot_text(writer, descriptor)}.__set__({name}, {writer.expr(item)})")
    if value._attrs is None:
        return
    if value._attrs.assigned:
        value._attrs.write(writer, name)
        return
    plain = type_lookup(value.cls, "__setattr__") is object.__setattr__
    for key, item in value._attrs.entries(None):
        if plain and key.isidentifier() and not keyword.iskeyword(key) and type_lookup(value.cls, key) is MISSING:
            writer.line(f"{name}.{key} = {writer.expr(item)}")
        else:
            writer.line(f"{dict_text(writer, value.cls, name)}[{key!r}] = {writer.expr(item)}")


def slot_text(writer: Writer, descriptor: Host) -> str:
    """The expression of a slot's descriptor: of a class made by the traced program, the real class's own."""
    owner = descriptor.__objclass__
    if not writer.trace.classes.is_fresh(owner):
        return writer.const(descriptor)
    return f"{writer.const(type)}.__getattribute__({writer.const(owner)}, {descriptor.__name__!r})"


def slot_effects(value: Any, writer: Writer) -> list[str]:
    """Lines that change the slots of an existing object as the traced program did."""
    changed = [(slot_text(writer, d), None if v is None else writer.expr(v)) for d, v in value.slots.items()]
    name = writer.source(value.source)
    empty = writer.const(empty_slot)
    return [f"{empty}({d}, {name})" if v is None else f"{d}.__set__({name}, {v})" for d, v in changed]


def empty_slot(descriptor: Host, obj: Host) -> None:
    """Delete what the slot holds, if anything."""
    with contextlib.suppress(AttributeError):
        descriptor.__delete__(obj)


def new_instance(space: Space, cls: type) -> Value:
    """`object.__new__(cls)` of a class whose layout is that of object."""
    if space.host_lookup(cls, "__del__") is not MISSING:
        # When an object dies is not traced, so what its finaliser does cannot be either.
        raise Unsupported(errors.NewFinalizer(cls.__name__))
    return InstanceValue(cls)
