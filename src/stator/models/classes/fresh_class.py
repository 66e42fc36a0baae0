"""A class of the traced program in the making: what generated code needs for it, and what the trace knows of it."""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import types
from typing import Any

from stator import errors
from stator.host.version_facts import CLASSES_KNOW_THEIR_LINE, LAZY_ANNOTATIONS
from stator.models.classes.class_annotations import (
    ClassDict,
    annotate_of,
    annotations_of,
    dict_cell,
    set_annotate,
    set_annotations,
)
from stator.models.classes.method_wrappers import ClassMethod, StaticMethod
from stator.models.classes.type_ import ClassValue
from stator.models.containers.mappingproxy import MappingProxyValue
from stator.models.functions.cell import CellValue
from stator.space.attributes import MISSING
from stator.space.globals_ import name_in
from stator.space.interfaces import Writer
from stator.space.operands import check_kind, host_errors
from stator.space.protocol import NONE
from stator.space.skeleton import HELD, SKELETONS, SkeletonError, blank_class, is_data_descriptor_of
from stator.space.space import Space
from stator.space.value import Constant, NotKnown, Raised, Unsupported, Value

#: what `type.__setattr__` does not put into the class's own namespace
_OF_TYPE = frozenset(
    (
        *("__bases__", "__mro__", "__dict__", "__name__", "__base__", "__basicsize__", "__itemsize__", "__flags__"),
        *("__weakrefoffset__", "__dictoffset__", "__text_signature__"),
    )
)


#: containers whose order says nothing about the layout, as slots are sorted
_SLOT_LISTS = (tuple, list, dict, set, frozenset)
#: what the layout of a class tells, and the text it was made with
_OF_LAYOUT = ("__flags__", "__basicsize__", "__itemsize__", "__dictoffset__", "__weakrefoffset__", "__text_signature__")


class FreshClass:
    """What generated code needs to make a class of the traced program, and what the trace knows of it."""

    def __init__(self, space: Space, meta: Value, name: str, bases: list[Value], namespace: Value) -> None:
        self.space = space
        self.meta = meta
        self.name = name
        self.bases = bases
        self.attributes: dict[str, Value] = {}
        self.fields: dict[str, Value] = {}
        self.slots: Value | None = None
        self.is_abstract_base = False
        cell = self._read(namespace)
        self.skeleton = self._make_skeleton()
        self.value = ClassValue(self.skeleton)
        self.value.cls = meta.as_host(space)
        self.value.recipe = self
        space.trace.classes.fresh[self.skeleton] = self.value
        space.trace.classes.overlays[self.skeleton] = self.attributes
        space._by_id[id(self.skeleton)] = self.value
        space._kept.append(self.skeleton)
        if cell is not None:
            cell.set(space, self.value)
        if self._dict_cell is not None:
            self._dict_cell.set(space, ClassDict(self.value))

    # -- making -----------------------------------------------------------------------------------------------------

    def _read(self, namespace: Value) -> CellValue | None:
        """Take the attributes out of the namespace; returns the `__class__` cell."""
        space = self.space
        cell: CellValue | None = None
        self._dict_cell: CellValue | None = None
        for key, value in namespace.pairs(space):  # type: ignore[attr-defined]
            key = key.force()
            if not key.isa(str):
                raise self._refuse("its namespace has a key that is no string")
            name = space.str_(key)
            value = value.force()
            if name == "__classcell__":
                if not isinstance(value, CellValue):
                    text = f"__classcell__ must be a nonlocal cell, not <class '{value.type_name(space)}'>"
                    raise space.error(TypeError, text)
                cell = value
            elif name == "__classdictcell__":
                self._dict_cell = dict_cell(space, value)
            elif name == "__qualname__":
                check_kind(space, value, str, "type __qualname__ must be a str, not %T")
                self.fields[name] = value
            else:
                self.attributes[name] = self._converted(name, value)
        self.slots = self.attributes.get("__slots__")
        module = name_in(space, space.trace.frame.globals, "__name__")
        if module is not None:
            self.attributes.setdefault("__module__", module)
        self.fields["__name__"] = Constant(self.name)
        self.fields.setdefault("__qualname__", Constant(self.name))
        return cell

    @staticmethod
    def _converted(name: str, value: Value) -> Value:
        if value.cls is types.FunctionType:
            if name == "__new__":
                return StaticMethod(staticmethod, value)
            if name in ("__init_subclass__", "__class_getitem__"):
                return ClassMethod(classmethod, value)
        return value

    def _refuse(self, why: str) -> Unsupported:
        return Unsupported(errors.UnsupportedClassCreation(self.name, why))

    def _make_skeleton(self) -> type:
        space = self.space
        namespace = {name: self._placeholder(name, value) for name, value in self.attributes.items()}
        namespace["__qualname__"] = str(space.known(self.fields["__qualname__"]))
        meta: type = self.meta.as_host(space)
        bases = tuple(base.as_host(space) for base in self.bases)
        if space.host_lookup(meta, "mro") is not type.__dict__["mro"]:
            raise self._refuse("its metaclass has a method mro")
        if "__abstractmethods__" in self.attributes:
            raise self._refuse("its namespace has __abstractmethods__")
        try:
            skeleton = blank_class(meta, self.name, bases, namespace)
        except SkeletonError as e:
            if type(e.__cause__) in (TypeError, ValueError) and not str(e).startswith("__bases__ assignment"):
                raise Raised(space.exception(e.__cause__)) from None  # type: ignore[arg-type]
            raise self._refuse(str(e)) from None
        SKELETONS.add(skeleton)
        return skeleton

    def _placeholder(self, name: str, value: Value) -> Any:
        if value.constant:
            return value.host
        if name == "__slots__":
            slots = self.space.known(value) if value.cls in _SLOT_LISTS else NotKnown
            if slots is NotKnown:
                raise self._refuse("its __slots__ are not known")
            return slots
        return HELD

    # -- attributes -------------------------------------------------------------------------------------------------

    def assign(self, space: Space, name: str, value: Value | None) -> None:
        """`cls.name = value` after the class was made."""
        space.mark_mutated(self.value)
        if value is None:
            with host_errors(space, AttributeError):
                type.__delattr__(self.skeleton, name)
            self.attributes.pop(name, None)
        else:
            value = value.force()
            self.attributes[name] = value
            type.__setattr__(self.skeleton, name, self._placeholder(name, value))
        for key in [k for k in space._lookups if k[1] == name]:
            del space._lookups[key]
        space.forget_class_attribute(name)

    def get_field(self, space: Space, name: str) -> Value | None:
        """A C-level attribute of the class."""
        if name in self.fields:
            return self.fields[name]
        if name in ("__bases__", "__mro__"):
            return space.new_tuple([space.class_value(c) for c in type.__dict__[name].__get__(self.skeleton)])
        if name == "__base__":
            return space.class_value(type.__dict__[name].__get__(self.skeleton))
        if name == "__annotate__":
            return annotate_of(space, self)
        if name == "__annotations__" and LAZY_ANNOTATIONS:
            return annotations_of(space, self)
        if name in ("__module__", "__doc__", "__annotations__", "__type_params__"):
            return self._own(space, name)
        if name == "__dict__":
            return self._namespace(space)
        if name == "__abstractmethods__":
            raise space.error(AttributeError, name)
        if name in _OF_LAYOUT:
            return Constant(type.__dict__[name].__get__(self.skeleton))
        raise Unsupported(errors.UnsupportedAttribute("type", name))

    def _own(self, space: Space, name: str) -> Value:
        value = self.attributes.get(name)
        if value is not None:
            if name == "__doc__" and space.host_lookup(value.cls, "__get__") is not MISSING:
                return space.descr_get(value, None, self.skeleton)
            return value
        if name == "__annotations__":
            self.attributes[name] = space.new_dict([])
            return self.attributes[name]
        return space.new_tuple([]) if name == "__type_params__" else NONE

    def _namespace(self, space: Space) -> Value:
        items = dict(self.attributes)
        for name, host in type.__dict__["__dict__"].__get__(self.skeleton).items():
            if name not in items:
                items[name] = space.existing(host) if host is not None else NONE
        return MappingProxyValue(space.new_dict([(Constant(k), v) for k, v in items.items()]))

    def set_field(self, space: Space, name: str, value: Value | None) -> bool:
        """Assign a C-level attribute of the class."""
        if value is None:
            return False
        if name in ("__name__", "__qualname__"):
            if not value.force().constant:
                return False
            with host_errors(space, TypeError, ValueError):
                type.__setattr__(self.skeleton, name, value.force().as_host(space))
            space.mark_mutated(self.value)
            self.fields[name] = value
            return True
        if name == "__annotate__":
            set_annotate(space, self, value)
            return True
        if name == "__annotations__" and LAZY_ANNOTATIONS:
            set_annotations(space, self, value)
            return True
        if name in ("__module__", "__doc__", "__annotations__"):
            if name == "__module__" and CLASSES_KNOW_THEIR_LINE and "__firstlineno__" in self.attributes:
                self.assign(space, "__firstlineno__", None)  # it was one in the file of the module before
            self.assign(space, name, value)
            return True
        if name == "__abstractmethods__":
            return self.set_abstract(space, value)
        return False

    def set_abstract(self, space: Space, value: Value) -> bool:
        names = space.known(value)
        if names is NotKnown:
            return False
        space.mark_mutated(self.value)
        type.__dict__["__abstractmethods__"].__set__(self.skeleton, names)
        self.fields["__abstractmethods__"] = value
        return True

    # -- generated code ---------------------------------------------------------------------------------------------

    def shell(self, writer: Writer) -> str:
        """A class with its layout and the places of its attributes, made without running any of the program's code."""
        bases = ", ".join(writer.expr(base) for base in self.bases)
        places = [f"{name!r}: {self._place(writer, name, value)}" for name, value in self.attributes.items()]
        places.append(f"'__qualname__': {writer.expr(self.fields['__qualname__'])}")
        function = writer.const(blank_class)
        return f"{function}({writer.expr(self.meta)}, {self.name!r}, ({bases},), {{{', '.join(places)}}})"

    def _only_at_creation(self, name: str) -> bool:
        """Whether `type.__setattr__` would not put the attribute into the class's own namespace."""
        return name == "__slots__" or name in _OF_TYPE or is_data_descriptor_of(self.meta.as_host(self.space), name)

    def _place(self, writer: Writer, name: str, value: Value) -> str:
        if self._only_at_creation(name):
            return writer.expr(value)
        return writer.const(value.host) if value.constant else writer.const(HELD)

    def reconstruct(self, writer: Writer) -> str:
        """The class, then its attributes."""
        name = writer.early(self.value)
        writer.name_value(self.value, name)
        setter = f"{writer.const(type)}.__setattr__"
        for attribute, value in list(self.attributes.items()):
            if not value.constant and not self._only_at_creation(attribute):
                writer.line(f"{setter}({name}, {attribute!r}, {writer.expr(value)})")
        if self.skeleton.__name__ != self.name:  # not earlier: private names in `__slots__` go by the first
            writer.line(f"{setter}({name}, '__name__', {writer.expr(self.fields['__name__'])})")
        if self.is_abstract_base:
            writer.line(f"{writer.const(_abc._abc_init)}({name})")
        elif "__abstractmethods__" in self.fields:
            writer.line(f"{name}.__abstractmethods__ = {writer.expr(self.fields['__abstractmethods__'])}")
        return name
