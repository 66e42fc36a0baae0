"""Reading objects as they are: no ``__getattribute__``, no descriptor, no overridden method takes part."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sized
from functools import partial
from types import (
    ClassMethodDescriptorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodDescriptorType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import Any, TypeVar, cast

__all__ = [
    *("ABSENT", "base_of", "class_dict", "dict_get", "dict_has", "dict_keys", "dict_values", "full_name"),
    *("instance_dict", "is_heap_type", "is_mutable_type", "is_subtype", "lacks_dict", "may_change_class"),
    *("members", "mro_of", "owner_of", "own_name", "own_qualname", "present_dict", "raw_length", "set_instance_dict"),
    *("type_flags", "type_lookup", "type_name"),
]


T = TypeVar("T")


class _Absent:
    """The mark for "there is none"."""

    def __repr__(self) -> str:
        return "ABSENT"

    def __reduce__(self) -> str:
        return "ABSENT"


ABSENT: Any = _Absent()

class_dict: Callable[[type], Mapping[str, Any]] = type.__dict__["__dict__"].__get__
mro_of: Callable[[type], tuple[type, ...] | None] = type.__dict__["__mro__"].__get__
base_of: Callable[[type], type | None] = type.__dict__["__base__"].__get__
own_name: Callable[[type], str] = type.__dict__["__name__"].__get__
own_qualname: Callable[[type], str] = type.__dict__["__qualname__"].__get__
type_flags: Callable[[type], int] = type.__dict__["__flags__"].__get__
_IMMUTABLE_TYPE = 1 << 8
_HEAP_TYPE = 1 << 9
_SLOT_KINDS = (GetSetDescriptorType, MemberDescriptorType)
_DESCRIPTORS = (MethodDescriptorType, ClassMethodDescriptorType, WrapperDescriptorType, *_SLOT_KINDS)


def _dict_slot(cls: type) -> Any:
    """The descriptor of the dict that instances of the class have, or None."""
    for base in mro_of(cls) or ():
        slot: Any = class_dict(base).get("__dict__")
        # a property called __dict__ is not the real one; it lies further down the MRO
        if type(slot) in _SLOT_KINDS and slot.__objclass__ is base:
            return slot
    return None


def instance_dict(obj: object) -> Mapping[object, Any] | None:
    """The dict that holds the object's own attributes (of a class: its read-only view), or None."""
    slot = _dict_slot(type(obj))
    found = None if slot is None else slot.__get__(obj)
    return found if isinstance(found, (dict, Mapping)) else None


def lacks_dict(obj: object) -> bool:
    """Whether it has no dict yet, of the types whose copies show it: to look for the dict would make it."""
    cls = type(obj)
    if is_subtype(cls, BaseException):
        return len(BaseException.__reduce__(obj)) < 3
    return is_subtype(cls, partial) and partial.__reduce__(obj)[2][3] is None


def present_dict(obj: object) -> Mapping[object, Any] | None:
    """The instance dict, where there is one already."""
    return None if lacks_dict(obj) else instance_dict(obj)


def set_instance_dict(obj: object, attributes: dict[str, object]) -> None:
    """Make the dict the one that holds the object's own attributes."""
    slot = _dict_slot(type(obj))
    if slot is None:
        raise TypeError(f"'{type(obj).__name__}' object has no __dict__ of its own")
    slot.__set__(obj, attributes)


def owner_of(function: Any) -> type | None:
    """The class that a C descriptor is of. Anything else may run code of the program's when it is asked for one."""
    return function.__objclass__ if type(function) in _DESCRIPTORS else None


def members(owner: Any, *kinds: type) -> dict[str, Any]:
    """The entries of a class's or module's own namespace that are of these types; none is asked for its `__class__`."""
    return {name: entry for name, entry in vars(owner).items() if issubclass(type(entry), kinds)}


def type_lookup(cls: type, name: str) -> Any:
    """What ``_PyType_Lookup`` finds: the first class of the MRO whose dict has the name; else ABSENT."""
    for base in mro_of(cls) or ():  # a class whose metaclass is working out its MRO has none
        found = class_dict(base).get(name, ABSENT)
        if found is not ABSENT:
            return found
    return ABSENT


def is_heap_type(cls: type) -> bool:
    """`Py_TPFLAGS_HEAPTYPE`: made by a class statement, or by C code at run time."""
    return bool(type_flags(cls) & _HEAP_TYPE)


def is_mutable_type(cls: type) -> bool:
    """Whether the program may assign attributes of the class."""
    return type_flags(cls) & (_HEAP_TYPE | _IMMUTABLE_TYPE) == _HEAP_TYPE


def may_change_class(obj: object) -> bool:
    """Whether the program may assign the object's `__class__`: `object_set_class` on what is no module."""
    cls = type(obj)
    return is_mutable_type(cls) or is_subtype(cls, ModuleType)


def is_subtype(cls: type, base: type) -> bool:
    """`PyType_IsSubtype`: `issubclass` would run a metaclass's `__subclasscheck__`."""
    mro = mro_of(cls)
    if mro is not None:
        return base in mro
    ancestor: type | None = cls  # whose MRO is being worked out
    while ancestor is not None and ancestor is not base:
        ancestor = base_of(ancestor)
    return ancestor is base


def dict_keys(mapping: dict[T, object]) -> Iterator[T]:
    """The dict's own keys in order, whatever a subclass's ``__iter__`` does."""
    if isinstance(mapping, OrderedDict):
        return OrderedDict.__iter__(mapping)
    return dict.__iter__(mapping)


def dict_values(mapping: dict[Any, T]) -> Iterator[T]:
    """The dict's own items in the order of its keys, none of which is hashed or compared."""
    if isinstance(mapping, OrderedDict):
        items = {id(key): item for key, item in dict.items(mapping)}
        return (items[id(key)] for key in OrderedDict.__iter__(mapping))
    return iter(dict.values(mapping))


def dict_get(mapping: Mapping[object, Any], key: object) -> Any:
    """The dict's own item or ABSENT; neither ``__getitem__`` nor ``__missing__`` of a subclass takes part."""
    if isinstance(mapping, dict):
        return dict.get(mapping, key, ABSENT)
    return mapping.get(key, ABSENT)


def dict_has(obj: object, key: object) -> bool | None:
    """Whether a dict has the key; None where it is no dict, or its keys cannot be compared."""
    if not isinstance(obj, dict):
        return None
    try:
        return dict.__contains__(obj, key)
    except Exception:  # the keys' own __hash__ or __eq__
        return None


def raw_length(obj: object) -> int:
    """The number of elements, by the built-in base's own ``__len__`` where there is one; -1 if there is no length."""
    for kind in _MEASURED:
        if isinstance(obj, kind):
            return kind.__len__(obj)  # type: ignore[no-any-return]
    try:
        return len(cast(Sized, obj))
    except Exception:
        return -1


_MEASURED: tuple[Any, ...] = (list, tuple, dict, set, frozenset, deque)


def full_name(cls: type) -> str:
    """`PyType_GetFullyQualifiedName`: with the module, where that is a string and not one that goes without saying."""
    module = class_dict(cls).get("__module__", "builtins") if is_heap_type(cls) else cls.__module__
    plain = not isinstance(module, str) or module in ("builtins", "__main__")
    return own_qualname(cls) if plain else f"{module}.{own_qualname(cls)}"


def type_name(cls: type) -> str:
    """`tp_name`, as the messages of CPython name the class: with the module where a C type was given one.

    No attribute holds it; a constructor that refuses the class shows it.
    """
    base: Any = str if is_subtype(cls, int) else int
    try:
        base.__new__(cls)
    except TypeError as e:
        return str(e).removeprefix(f"{base.__name__}.__new__(").partition("):")[0]
    raise AssertionError(f"{base.__name__} has made an instance of another type")
