"""C-level attributes: getset and member descriptors, `__slots__`."""

from __future__ import annotations

import types
import weakref
from typing import Any

from stator import errors
from stator.guards.guard import Distinct, Predicate
from stator.guards.raw import class_dict, is_mutable_type, is_subtype, type_lookup
from stator.guards.source import CallSource, GetAttrSource, Source
from stator.host.version_facts import TYPES_NAMED_IN_FULL
from stator.models.classes.attr_dict import assign_dict
from stator.models.functions.method import Named
from stator.space.facts import fixed
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.protocol import NONE, folds_if, handler_of, is_pure, models, pure
from stator.space.samples import sample_of
from stator.space.space import Space
from stator.space.value import Known, Raised, Unsupported, Value
from stator.space.wrapping import LITERALS

_PLAIN_READERS = (object.__getattribute__, type.__getattribute__)


@models(types.GetSetDescriptorType, types.MemberDescriptorType)
class FieldDescriptor(Named):
    """The descriptor of a C-level attribute.

    A model of the instance answers by `get_field(space, name)` and `set_field(space, name, value or None)`; a handler
    registered for the descriptor itself comes first. What nobody models is read from the existing object.
    """

    __slots__ = ()

    def describe(self) -> str:
        return f"attribute {self.qualname}"

    def reconstruct(self, writer: Writer) -> str:
        """One of a class that the program has made is found in that class: `host` is of its skeleton."""
        fresh = writer.trace.classes.fresh.get(self.owner)
        if fresh is None:
            return super().reconstruct(writer)
        if class_dict(self.owner).get(self.name) is not self.host:  # the program has taken it out of the class
            raise Unsupported(errors.NotReconstructible(self.describe()))
        return writer.assign("descriptor", f"{writer.const(field_of)}({writer.expr(fresh)}, {self.name!r})")

    # -- reading ----------------------------------------------------------------------------------------------------

    def get_field(self, space: Space, name: str) -> Value | None:
        """The host names the skeleton of a class that the program has made; all else is told right by the host."""
        return space.trace.classes.fresh.get(self.owner) if name == "__objclass__" else None

    def descr_get(self, space: Space, instance: Value | None, owner: type, in_tail_position: bool) -> Value:
        if instance is None:
            return self
        instance = instance.force()
        self._check(space, instance)
        host = self.host
        handler = handler_of(host)
        if handler is not None:
            modelled = handler(space, [instance], {})
            if modelled is not None:
                return modelled
        if self.name == "__dict__":
            attrs = instance.attr_dict(space)
            if attrs is not None:
                return attrs.value(space)  # type: ignore[no-any-return]
        if is_slot(host):
            return self._slot(space, instance)
        value = instance.get_field(space, self.name)
        return self.read_existing(space, instance) if value is None else value

    def _slot(self, space: Space, instance: Value) -> Value:
        """A variable of the program's own `__slots__`."""
        slots = getattr(instance, "slots", None)
        if slots is not None and self.host in slots:
            value: Value | None = slots[self.host]
            if value is None:
                raise self._unset(space, instance)
            return value
        if instance.source is None:
            found = instance.get_field(space, self.name) if slots is None else None
            if found is not None:
                return found
            if slots is None:
                raise self.unmodelled(instance)
            raise self._unset(space, instance)
        obj = instance.identity(space)
        if is_set(self.host, obj):
            # A guard that only loads: the slot must hold something, even if what it holds is never looked at.
            space.trace.guard(Distinct(self.source_in(instance.source, obj), ()))
            return self.read_existing(space, instance)
        text = f"{instance.source.expr()}.{self.name} is unset"
        space.trace.guard(Predicate((instance.source,), Unset(self.host), text))
        raise self._unset(space, instance)

    def _unset(self, space: Space, instance: Value) -> Raised:
        """`PyMember_GetOne`."""
        shown = space.full_name(instance.cls) if TYPES_NAMED_IN_FULL else None
        return space.attribute_error(instance, self.name, shown)

    def read_existing(self, space: Space, instance: Value) -> Value:
        """Let C code read the attribute of an existing object that the trace has not changed."""
        host = self.host
        if instance.constant:
            return space.run_known(host.__get__, [instance])
        if instance.source is None:
            if not isinstance(instance, Known) or not is_pure(host):
                raise self.unmodelled(instance)
            return space.fresh(host.__get__(instance.host))
        obj = instance.identity(space)
        try:
            found = host.__get__(obj)
            again = host.__get__(obj)
        except Exception as e:
            raise self.unmodelled(instance) from e
        if found is not again and not (type(found) in LITERALS and _same(found, again)):
            raise self.unmodelled(instance)
        return space.wrap(found, self.source_in(instance.source, obj))

    def source_in(self, base: Source, obj: Host) -> Source:
        """Where generated code and guards find the attribute."""
        cls = type(obj)
        name = self.name
        plain = type_lookup(cls, "__getattribute__") in _PLAIN_READERS and type_lookup(cls, name) is self.host
        if plain and not issubclass(cls, type):
            return GetAttrSource(base, name)
        return CallSource(reader(self.host), base, f"{self.qualname}.__get__")

    def unmodelled(self, instance: Value) -> Unsupported:
        return Unsupported(errors.UnsupportedAttribute(instance.cls.__name__, self.name))

    def tp_get(self, space: Space, instance: Value, owner: Value, /) -> Value:
        return self if instance.is_none() else self.descr_get(space, instance, instance.cls, False)

    def _check(self, space: Space, instance: Value) -> None:
        if not is_subtype(instance.cls, self.owner):
            name, owner = self.name, space.type_name(self.owner)
            text = f"descriptor '{name}' for '{owner}' objects doesn't apply to a '{instance.type_name(space)}' object"
            raise space.error(TypeError, text)

    # -- writing ----------------------------------------------------------------------------------------------------

    def tp_set(self, space: Space, instance: Value, value: Value, /) -> Value:
        return self._assign(space, instance.force(), value)

    def tp_delete(self, space: Space, instance: Value, /) -> Value:
        return self._assign(space, instance.force(), None)

    def _assign(self, space: Space, instance: Value, value: Value | None) -> Value:
        self._check(space, instance)
        if is_slot(self.host):
            return self._assign_slot(space, instance, value)
        if self.name == "__dict__" and assign_dict(space, instance, value):
            return NONE
        if not instance.set_field(space, self.name, value):
            self._refuse_if_readonly(space, value)
            raise Unsupported(errors.UnsupportedMutation(f"setting '{self.name}'", instance.describe()))
        return NONE

    def _refuse_if_readonly(self, space: Space, value: Value | None) -> None:
        """Whether it can be written at all is tried on an empty object of the type."""
        blank = _blank(self.owner)
        try:
            if value is None:
                self.host.__delete__(blank)
            else:
                self.host.__set__(blank, None)
        except (AttributeError, TypeError) as e:
            if str(e) in _READONLY or str(e).endswith("objects is not writable"):
                raise Raised(space.exception(e)) from None
        except Exception:
            pass

    def _assign_slot(self, space: Space, instance: Value, value: Value | None) -> Value:
        slots = getattr(instance, "slots", None)
        if slots is None:
            raise Unsupported(errors.UnsupportedMutation(f"setting '{self.name}'", instance.describe()))
        if value is None:
            try:
                self._slot(space, instance)
            except Raised:
                raise space.error(AttributeError, self.name) from None  # PyMember_SetOne says no more
        space.mark_mutated(instance)
        slots[self.host] = value
        return NONE


for _cls in (types.MemberDescriptorType, types.MethodDescriptorType, types.WrapperDescriptorType):
    pure(_cls.__reduce__, _cls.__repr__)
pure(types.GetSetDescriptorType.__repr__, types.ClassMethodDescriptorType.__repr__)


@folds_if(types.MemberDescriptorType.__repr__, types.GetSetDescriptorType.__repr__)
def _name_owner(space: Space, args: list[Host], kwargs: dict[str, Host]) -> None:
    """Their texts name the class."""
    for descriptor in args:
        if isinstance(descriptor, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            space.class_name(fixed(descriptor, "__objclass__"))


_READONLY = ("readonly attribute", "cannot delete __dict__")


def _blank(cls: Any) -> Any:
    """An object of a C type, None where none can be had by its constructor alone."""
    if is_mutable_type(cls):
        return None
    made = sample_of(cls)
    if made is not None:
        return made
    for args in ((), (len,), (0,)):
        try:
            return cls.__new__(cls, *args)
        except Exception:
            continue
    return None


def field_of(cls: type, name: str) -> Any:
    """The descriptor in the class's own dict."""
    return class_dict(cls)[name]


def is_slot(host: Host) -> bool:
    """Whether a member descriptor was made by `__slots__`."""
    if not isinstance(host, types.MemberDescriptorType):
        return False
    owner = host.__objclass__
    return is_mutable_type(owner) and "__slots__" in owner.__dict__


def is_set(descriptor: Host, obj: Host) -> bool:
    """Whether the slot of the object holds something."""
    try:
        descriptor.__get__(obj)
    except AttributeError:
        return False
    return True


class Unset:
    """Check that a slot is (still) empty."""

    def __init__(self, descriptor: Host) -> None:
        self.descriptor = descriptor

    def __call__(self, obj: Host) -> bool:
        return not is_set(self.descriptor, obj)


class Reader:
    """`descriptor.__get__(obj)` as a load of guards and generated code."""

    def __init__(self, descriptor: Host) -> None:
        self.descriptor = descriptor

    def __call__(self, obj: Host) -> Any:
        return self.descriptor.__get__(obj)

    def __reduce__(self) -> tuple[Host, ...]:
        return _reader_of, (self.descriptor.__objclass__, self.descriptor.__name__)


#: by the id of the descriptor, which the reader holds
_READERS: weakref.WeakValueDictionary[int, Reader] = weakref.WeakValueDictionary()


def reader(descriptor: Host) -> Reader:
    """The reader of a descriptor, one object for each, as sources are interned by it."""
    known = _READERS.get(id(descriptor))
    if known is None:
        known = _READERS[id(descriptor)] = Reader(descriptor)
    return known


def _reader_of(cls: type, name: str) -> Reader:
    return reader(cls.__dict__[name])


def _same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a == b or a != a)
