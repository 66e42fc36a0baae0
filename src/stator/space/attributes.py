"""Attribute access: `Objects/typeobject.c` and `Objects/object.c`, generically."""

from __future__ import annotations

import types
from typing import Any

from stator import errors
from stator._core import is_generic_access
from stator.guards.guard import Equals, MroIs, NoAttr, TypeAttrIs
from stator.guards.raw import ABSENT, class_dict, full_name, is_mutable_type, mro_of, own_name, type_lookup, type_name
from stator.guards.source import CallSource, ConstSource, TypeAttrSource
from stator.host.version_facts import NO_DICT_IS_SAID
from stator.space.protocol import HANDLERS
from stator.space.space import Space
from stator.space.value import NULL, Constant, Raised, Unsupported, Value
from stator.space.wrapping import plain_name

#: classes and modules: their models look attributes up themselves
_OWN_GETATTR = (type.__getattribute__, types.ModuleType.__getattribute__)
#: what `host_lookup` returns for a name no class of the MRO has
MISSING: Any = ABSENT


def is_generic(slot: Any) -> bool:
    """Whether an `__getattribute__`, `__setattr__` or `__delattr__` is the ordinary one, under any type's name."""
    return is_generic_access(slot) and (slot.__objclass__ is object or id(slot) not in HANDLERS)


def attribute_name(space: Space, name: Value) -> str:
    """The name given to `__getattribute__` and its like, which must be a string."""
    name = name.force()
    if not name.isa(str):
        raise space.error(TypeError, f"attribute name must be string, not '{name.type_name(space)}'")
    if any(space.host_lookup(name.cls, own) is not getattr(str, own) for own in ("__hash__", "__eq__")):
        raise Unsupported(errors.UnsupportedSlot(name.cls.__name__, "hash or comparison of an attribute's name"))
    return str.__str__(name.as_host(space))


def _on_class(host: Any, name: str) -> Any:
    """The attribute of an object's class; raises KeyError."""
    found = type_lookup(type(host), name)
    if found is MISSING:
        raise KeyError(name)
    return found


class Attributes(Space):
    """Part of the space: type lookup, getattr, setattr, delattr, descriptors."""

    def host_lookup(self, cls: type, name: str) -> Any:
        """`_PyType_Lookup`: the raw attribute along the MRO, or MISSING; guarded where the class can change."""
        key = (cls, name)
        try:
            return self._lookups[key]
        except KeyError:
            pass
        found = type_lookup(cls, name)
        if self.trace.classes.is_fresh(cls):
            self._guard_bases(cls, name)
        elif is_mutable_type(cls):
            self.trace.guard(TypeAttrIs(cls, name, found))
        self._lookups[key] = found
        return found

    def _guard_bases(self, cls: type, name: str) -> None:
        """A class made by the traced program inherits from existing ones, which can change."""
        for base in cls.__mro__:
            if not self.trace.classes.is_fresh(base):
                self.host_lookup(base, name)
            if name in class_dict(base):
                return

    def mro(self, cls: type) -> tuple[type, ...]:
        """The classes along which attributes of the class are looked up; guarded where its bases can be assigned."""
        known = self._mros.get(cls)
        if known is not None:
            return known
        found = mro_of(cls) or ()
        for base in found if self.trace.classes.is_fresh(cls) else (cls,):
            if is_mutable_type(base) and not self.trace.classes.is_fresh(base):
                self.trace.guard(MroIs(ConstSource(base, plain_name(base)), mro_of(base) or ()))
        if not self.trace.classes.is_fresh(cls):
            self._mros[cls] = found
        return found

    def derives(self, cls: type, base: type) -> bool:
        """`PyType_IsSubtype`, of a class whose bases the program may assign."""
        return cls is base or base in self.mro(cls)

    def class_name(self, cls: type) -> str:
        """`_PyType_Name`: `__name__`, whatever a metaclass says; guarded where the program can give it another."""
        if is_mutable_type(cls) and not self.trace.classes.is_fresh(cls):
            source = CallSource(own_name, ConstSource(cls, plain_name(cls)), "type.__name__")
            self.trace.guard(Equals(source, own_name(cls)))
        return own_name(cls)

    def type_name(self, cls: type) -> str:
        """`tp_name`, as CPython's messages name the class."""
        self.class_name(cls)
        return type_name(cls)

    def full_name(self, cls: type) -> str:
        """`PyType_GetFullyQualifiedName`, as the messages of 3.13 name the class; guarded like its name."""
        found = full_name(cls)
        if is_mutable_type(cls) and not self.trace.classes.is_fresh(cls):
            source = ConstSource(cls, plain_name(cls))
            self.trace.guard(Equals(CallSource(full_name, source, "full_name"), found))
        return found

    def lookup(self, cls: type, name: str) -> Value | None:
        """The class attribute as a value, or None; what the traced program did to the class is seen."""
        key = (cls, name)
        try:
            return self._class_values[key]  # type: ignore[no-any-return]
        except KeyError:
            pass
        for base in cls.__mro__:
            overlay = self.trace.classes.overlays.get(base)
            if overlay is not None and name in overlay:
                return overlay[name]
            if name in class_dict(base):
                break
        value = self._varying_attribute(cls, name)
        host = self.host_lookup(cls, name) if value is None else MISSING
        if host is not MISSING:
            # Which object it is has been guarded by host_lookup, or cannot change.
            value = self.existing(host, f"{cls.__qualname__}.{name}")
        self._class_values[key] = value
        return value

    def _varying_attribute(self, cls: type, name: str) -> Value | None:
        """A symbol for a number that a class has, where programs change it (`Handle.next_id += 1`); or None."""
        found = type_lookup(cls, name)
        if type(found) not in (int, float) or not is_mutable_type(cls) or self.trace.classes.is_fresh(cls):
            return None
        return self.symbol(found, TypeAttrSource(ConstSource(cls, plain_name(cls)), name))

    def forget_class_attribute(self, name: str) -> None:
        """A class attribute of this name was set or deleted by the traced program."""
        for key in [k for k in self._class_values if k[1] == name]:
            del self._class_values[key]

    # -- reading ----------------------------------------------------------------------------------------------------

    def getattr(self, value: Value, name: str, in_tail_position: bool = False) -> Value:
        """`value.name`. `in_tail_position`: the result goes straight onto the stack of the frame that asked."""
        try:
            return self._getattr(value, name, in_tail_position)
        except Raised as e:
            if e.matches(AttributeError):
                e.value.name_attribute(self, value.force(), name)  # type: ignore[attr-defined]
            raise

    def _getattr(self, value: Value, name: str, in_tail_position: bool) -> Value:
        value = value.force()
        cls = value.cls
        slot = self.host_lookup(cls, "__getattribute__")
        fallback = self.lookup(cls, "__getattr__")
        if fallback is None:
            return self._getattribute(slot, value, name, in_tail_position)
        try:
            if is_generic(slot):
                found = self.find_attribute(value, name, False)
                if found is not None:
                    return found
            else:
                return self._getattribute(slot, value, name, False)
        except Raised as e:
            if not e.matches(AttributeError):
                raise
        return self.call(self.bind(fallback, value), [Constant(name)], {}, in_tail_position)

    def _getattribute(self, slot: Any, value: Value, name: str, in_tail_position: bool) -> Value:
        if is_generic(slot):
            return self.generic_getattr(value, name, in_tail_position)
        slot_value = self.special(value, "__getattribute__")
        return self.call(slot_value, [value, Constant(name)], {}, in_tail_position)  # type: ignore[arg-type]

    def generic_getattr(self, value: Value, name: str, in_tail_position: bool = False) -> Value:
        """`PyObject_GenericGetAttr`."""
        found = self.find_attribute(value, name, in_tail_position)
        if found is None:
            raise self.attribute_error(value, name)
        return found

    def find_attribute(self, value: Value, name: str, in_tail_position: bool) -> Value | None:
        """Data descriptor, instance dict, non-data descriptor, class attribute; None where there is none of them."""
        cls = value.cls
        meta = self.lookup(cls, name)
        get = MISSING
        if meta is not None:
            get = self.host_lookup(meta.cls, "__get__")
            if get is not MISSING and self.is_data_descriptor(meta):
                return self.descr_get(meta, value, cls, in_tail_position)
        found = self.instance_attribute(value, name)
        if found is not None:
            return found
        if get is not MISSING:
            assert meta is not None
            return self.descr_get(meta, value, cls, in_tail_position)
        return meta

    def attribute_under(self, value: Value, name: Value) -> Value | None:
        """The attribute of an existing object under a text that is not the same for good: `getattr(self, f"layer{i}")`.

        None where it must be known, as a class has such an attribute, or nobody has.
        """
        value = value.force()
        cls, changed = value.cls, self.trace.classes.overlays
        if value.source is None or not is_generic(self.host_lookup(cls, "__getattribute__")):
            return None
        if any(base in changed for base in self.mro(cls)) or name.select(self, value, _on_class) is not NULL:
            return None
        attrs, fallback = value.attr_dict(self), self.lookup(cls, "__getattr__")
        found = None if attrs is None else attrs.value(self).find(self, name)
        if found is not None or fallback is None:
            return found
        return self.call(self.bind(fallback, value), [name], {})

    def instance_attribute(self, value: Value, name: str) -> Value | None:
        """The attribute in the instance's own dict, or None."""
        if value.lacks_dict(self):
            self.trace.guard(NoAttr(value.source, name))  # type: ignore[arg-type]
            return None
        attrs = value.attr_dict(self)
        return None if attrs is None else attrs.get_str(self, name)

    def _no_dict(self, cls: type) -> str:
        """What some versions add about an object that takes no attributes."""
        plain = self.host_lookup(cls, "__setattr__") is object.__setattr__
        return " and no __dict__ for setting new attributes" if plain and NO_DICT_IS_SAID else ""

    def attribute_error(self, value: Value, name: str, shown: str | None = None, why: str = "") -> Raised:
        own = type_name(value.cls) if shown is None else shown
        text = f"'{own}' object has no attribute '{name}'{why}"
        return self.no_attribute(value, name, text, value.cls if shown is None else None)

    def no_attribute(self, value: Value, name: str, text: str, named: type | None = None) -> Raised:
        """The AttributeError about `value.name` in these words, which have the name of the class `named`."""
        raised: Raised = self.error(AttributeError, text)
        raised.value.names_class = named  # type: ignore[attr-defined]
        raised.value.name_attribute(self, value, name)  # type: ignore[attr-defined]
        return raised

    def is_data_descriptor(self, meta: Value) -> bool:
        cls = meta.cls
        return self.host_lookup(cls, "__set__") is not MISSING or self.host_lookup(cls, "__delete__") is not MISSING

    def descr_get(self, meta: Value, instance: Value | None, owner: type, in_tail_position: bool = False) -> Value:
        """`type(meta).__get__(meta, instance, owner)`."""
        quick = getattr(meta, "descr_get", None)
        if quick is not None:
            return quick(self, instance, owner, in_tail_position)  # type: ignore[no-any-return]
        get = self.lookup(meta.cls, "__get__")
        none = Constant(None)
        args = [meta, none if instance is None else instance, self.class_value(owner)]
        return self.call(get, args, {}, in_tail_position)  # type: ignore[arg-type]

    def class_value(self, cls: type) -> Value:
        """The value of a class."""
        return self.trace.classes.fresh.get(cls) or self.existing(cls)

    def bind(self, function: Value, instance: Value) -> Value:
        """A special method looked up on the class, bound as the interpreter binds it."""
        if self.host_lookup(function.cls, "__get__") is MISSING:
            return function
        return self.descr_get(function, instance, instance.cls)

    def getattr_or_none(self, value: Value, name: str) -> Value | None:
        """`getattr(value, name)`, or None where that raises AttributeError."""
        try:
            return self.getattr(value, name)
        except Raised as e:
            if e.matches(AttributeError):
                return None
            raise

    # -- writing ----------------------------------------------------------------------------------------------------

    def setattr(self, value: Value, name: str, item: Value) -> None:
        """`value.name = item`."""
        value = value.force()
        slot = self.host_lookup(value.cls, "__setattr__")
        if is_generic(slot):
            self.generic_setattr(value, name, item)
        else:
            self.call(self.special(value, "__setattr__"), [value, Constant(name), item], {})  # type: ignore[arg-type]

    def delattr(self, value: Value, name: str) -> None:
        """`del value.name`."""
        value = value.force()
        slot = self.host_lookup(value.cls, "__delattr__")
        if is_generic(slot):
            self.generic_setattr(value, name, None)
        else:
            self.call(self.special(value, "__delattr__"), [value, Constant(name)], {})  # type: ignore[arg-type]

    def generic_setattr(self, value: Value, name: str, item: Value | None) -> None:
        """`PyObject_GenericSetAttr`; item None deletes."""
        meta = self.lookup(value.cls, name)
        if meta is not None and self._descr_set(meta, value, item):
            return
        attrs = value.attr_dict(self)
        if attrs is None:
            if value.cls.__dictoffset__:  # of a type whose model has no place for it
                raise Unsupported(errors.UnsupportedAttribute(value.cls.__name__, name))
            if meta is None:
                raise self.attribute_error(value, name, why=self._no_dict(value.cls))
            kind = f"'{value.type_name(self)}' object attribute '{name}' is read-only"
            raise self.error(AttributeError, kind)
        if item is not None:
            attrs.set_str(self, name, item)
        elif not attrs.del_str(self, name):
            raise self.attribute_error(value, name)

    def _descr_set(self, meta: Value, value: Value, item: Value | None) -> bool:
        method = "__set__" if item is not None else "__delete__"
        if not self.is_data_descriptor(meta):
            return False
        setter = self.lookup(meta.cls, method)
        if setter is None:
            raise self.error(AttributeError, method)
        self.call(setter, [meta, value] if item is None else [meta, value, item], {})
        return True
