"""Making a class without running any code of the program's: no `__init_subclass__`, `__set_name__` or metaclass.

The tracer needs such classes to stand for those the traced program makes, and generated code to make them: what the
program's hooks do has been traced already.
"""

from __future__ import annotations

import contextlib
import types
import weakref

from stator.guards.raw import is_heap_type, members, type_lookup
from stator.space.host_types import Host

__all__ = ["HELD", "SKELETONS", "SkeletonError", "blank_class", "detach", "is_data_descriptor_of"]

#: classes that exist only while tracing
SKELETONS: weakref.WeakSet[type] = weakref.WeakSet()
_INIT_SUBCLASS = object.__dict__["__init_subclass__"]


class SkeletonError(Exception):
    """The layout of the class cannot be had without running the program's hooks."""


class Held:
    """Keeps the place of an attribute in a class's namespace until it is set."""

    __slots__ = ()


HELD = Held()


def blank_class(meta: type, name: str, bases: tuple[type, ...], namespace: dict[str, Host]) -> type:
    """`type.__new__(meta, name, bases, namespace)`, except that no code of the program's is run."""
    try:
        if all(map(_has_no_hook, bases)):
            return type.__new__(meta, name, bases, namespace)
        best = _best_base(bases)
        first = best if _has_no_hook(best) else _layout_base(bases)
        cls: type = type.__new__(meta, name, (first,), namespace)
        type.__dict__["__bases__"].__set__(cls, bases)
    except (TypeError, ValueError) as e:
        raise SkeletonError(str(e)) from e
    return cls


def _has_no_hook(base: type) -> bool:
    return type_lookup(base, "__init_subclass__") is _INIT_SUBCLASS


def _layout_base(bases: tuple[type, ...]) -> type:
    """A base class of the same layout that has no hooks."""
    best = type("Probe", (), {"__slots__": ()}) if not bases else _best_base(bases)
    solid = best
    while is_heap_type(solid):
        base = solid.__base__
        assert base is not None
        solid = base
    own: dict[str, Host] = {}
    if best.__dictoffset__ == 0 and best.__weakrefoffset__ == 0:
        own["__slots__"] = ()
    elif best.__dictoffset__ == 0:
        own["__slots__"] = ("__weakref__",)
    elif best.__weakrefoffset__ == 0 and solid.__weakrefoffset__ == 0:
        own["__slots__"] = ("__dict__",)
    return type.__new__(type, "Base", (solid,), own)


def _best_base(bases: tuple[type, ...]) -> type:
    """The first base of those whose objects have the most derived layout; among them one that has a `__dict__`."""
    return max(bases, key=lambda base: (len(_layout(base).__mro__), base.__dictoffset__ != 0))


def _layout(cls: type) -> type:
    """The class that the layout of the objects is of, but for a `__dict__` and references: `solid_base`."""
    while is_heap_type(cls) and not members(cls, types.MemberDescriptorType):
        assert cls.__base__ is not None
        cls = cls.__base__
    return cls


def detach(cls: type) -> None:
    """Take a class that stood for one of the traced program out of the `__subclasses__()` of its bases."""
    with contextlib.suppress(TypeError):
        type.__dict__["__bases__"].__set__(cls, (_layout_base(cls.__bases__),))


def is_data_descriptor_of(meta: type, name: str) -> bool:
    """Whether assigning the attribute of a class would meet a data descriptor of its own metaclass."""
    found = type_lookup(meta, name)
    if name in type.__dict__:
        return False
    return hasattr(type(found), "__set__") or isinstance(found, types.MemberDescriptorType)
