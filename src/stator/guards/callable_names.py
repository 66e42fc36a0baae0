"""How messages name what is written in C: as the program finds it, not as the C code is put together."""

from __future__ import annotations

import builtins
import functools
import sys
import types
from typing import Any

from stator.guards.raw import ABSENT, class_dict, full_name, is_heap_type, mro_of, own_name, own_qualname, type_lookup

__all__ = ["INSTANCE_METHOD", "callable_name", "class_name", "exported_as", "function_of", "is_unbound", "place_of"]

#: the type of C functions that are methods where a class has them (`PyInstanceMethod_Type`), which bears no name
INSTANCE_METHOD: Any = next(
    cls for cls in object.__subclasses__() if own_name(cls) == "instancemethod" and not is_heap_type(cls)
)


def callable_name(host: Any, cls: type | None = None) -> str:
    """The name of a C function with its module, or with the class that has it as a method: `cls` or a base of it."""
    if is_unbound(host):
        place = place_of(host, cls) if cls is not None else None
        return f"{host.__module__}.{host.__name__}" if place is None else f"{class_name(place[0])}.{place[1]}"
    owner = getattr(host, "__objclass__", None)
    if owner is None and type(host) is types.BuiltinFunctionType:
        bound = host.__self__  # a module, for a function
        owner = (
            None if isinstance(bound, types.ModuleType | None) else bound if isinstance(bound, type) else type(bound)
        )
    if owner is not None:
        if own_name(owner).startswith("_") and cls is not None and owner in (mro_of(cls) or ()):
            owner = cls  # `io._IOBase` is nobody's word for a file
        return f"{class_name(owner)}.{host.__name__}"
    name = getattr(host, "__qualname__", None) or repr(host)
    module = getattr(host, "__module__", None)
    return exported_as(host) or (f"{module}.{name}" if module and module != "builtins" else str(name))


def class_name(cls: type) -> str:
    """The name of a class with its module, which its own name may have already (`torch.jit.ScriptFunction`)."""
    name = own_qualname(cls)
    plain = name.startswith(f"{cls.__module__}.") or str(cls.__module__).startswith("_")
    return exported_as(cls) or (name if plain else full_name(cls))


@functools.lru_cache(256)
def exported_as(thing: Any) -> str | None:
    """The name that a module of Python code offers something under which C code made: `os.getpid` of `posix.getpid`."""
    module = sys.modules.get(str(thing.__module__))
    if module is builtins or hasattr(module, "__path__") or str(getattr(module, "__file__", "")).endswith(".py"):
        return None
    found = []
    for place, other in list(sys.modules.items()):
        offered = vars(other).get("__all__") if isinstance(other, types.ModuleType) else None
        if isinstance(offered, list | tuple) and not any(part.startswith("_") for part in place.split(".")):
            found += [f"{place}.{name}" for name in offered if vars(other).get(name) is thing]
    return min(found, key=len, default=None) or _twin_of(thing)


def _twin_of(thing: Any) -> str | None:
    """The name in the module that stands before the C module, if it lists none: `sqlite3.connect` of `_sqlite3`."""
    public, name = str(thing.__module__).removeprefix("_"), str(thing.__name__)
    twin = sys.modules.get(public)
    return f"{public}.{name}" if isinstance(twin, types.ModuleType) and vars(twin).get(name) is thing else None


def is_unbound(host: Any) -> bool:
    """Whether a C function whose `__self__` is some object is none of the methods of that object (`[].append`).

    pybind11 keeps the record of a function's overloads there, whose class `__qualname__` names.
    """
    if type(host) is not types.BuiltinFunctionType:
        return False
    kind = type(host.__self__)
    if issubclass(kind, types.ModuleType | type | types.NoneType):
        return False
    return type(host.__module__) is str or type_lookup(kind, host.__name__) is ABSENT


def place_of(function: Any, cls: type) -> tuple[type, str] | None:
    """The class along the MRO that has the function as a method or as the getter of a property, and its name there."""
    for base in mro_of(cls) or ():
        for name, found in class_dict(base).items():
            if function_of(found) is function:
                return base, name
    return None


def function_of(member: Any) -> Any:
    """The C function behind a method or the getter of a property."""
    function: Any = member.fget if type(member) is property else member
    return function.__func__ if type(function) is INSTANCE_METHOD else function
