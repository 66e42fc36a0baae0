"""Models that ordinary programs never meet: a file of them is imported when the first object that it is about is met.

Where a table of `protocol` has no answer for a type or a callable, `load` is asked. The index gives names
(`models/rare/__init__.py`), so that nothing has to be imported to say what a file is about. It goes by the object's
*home*, which is the type itself, the type that a method or another descriptor is of, or the module of a function:

    decimal.Decimal.sqrt     of the type `decimal.Decimal`, in the module `decimal`
    sys.getsizeof            the function `sys.getsizeof`
    list.__sizeof__          a method `*.__sizeof__`

Most homes are not in the index, which a look-up of the module's name tells: every Python function that has no model is
searched for.

While one thread imports a file, another may look at the tables. What it does not find it waits for; so a file fills the
table of what is found first, `MODELS` or `IMMUTABLE`, after those that are asked next, `REALISERS` for one.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Mapping, Sequence

from stator.guards.raw import own_qualname, owner_of
from stator.space.host_types import Host

__all__ = ["announce", "files_about", "load", "load_all"]

#: module, as a name in the index may begin → the rest of the name → the files about that; `*` for methods of any type
_FILES: dict[str, dict[str, list[str]]] = {"*": {}}
#: files that have been imported to their end: one that another thread is importing is waited for
_LOADED: set[str] = set()

_module_of = type.__dict__["__module__"].__get__
_BUILTINS = (types.BuiltinFunctionType, types.MethodWrapperType)


def announce(package: str, index: Mapping[str, str]) -> None:
    """Make an index known: file in the package → the names of what it is about, with spaces between them."""
    for file, names in index.items():
        for name in names.split():
            parts = name.split(".")
            for i in range(1, len(parts) + 1):
                inside = _FILES.setdefault(".".join(parts[:i]), {})
                inside.setdefault(".".join(parts[i:]), []).append(f"{package}.{file}")


def load(host: Host) -> bool:
    """Import the files about a type or a callable; whether there are any, so that the tables may answer now.

    They may have been imported by another thread since the caller has asked the tables.
    """
    files = files_about(host)
    for file in files:
        if file not in _LOADED:
            importlib.import_module(file)
            _LOADED.add(file)
    return bool(files)


def load_all() -> None:
    """Import every file, for those who report on all models."""
    for files in [files for inside in _FILES.values() for files in inside.values()]:
        for file in files:
            importlib.import_module(file)


def files_about(host: Host) -> Sequence[str]:
    """The files that the index names for the home of a type or a callable; reads nothing that is the program's own."""
    cls = type(host)
    if cls is types.FunctionType:
        return _named(host.__module__, host.__qualname__)
    if issubclass(cls, type):
        return _of_type(host)
    owner = owner_of(host)
    if owner is not None:
        return _of_type(owner, host.__name__)
    if cls not in _BUILTINS:
        return ()
    owner = host.__self__
    kind = type(owner)
    if owner is None or issubclass(kind, types.ModuleType):
        return _named(host.__module__, host.__name__)
    return _of_type(owner if issubclass(kind, type) else kind, host.__name__)


def _of_type(cls: type, method: str = "") -> Sequence[str]:
    try:
        module = _module_of(cls)
    except AttributeError:  # `type("C", (), {})` in a namespace without `__name__`
        module = None
    found, starred = _named(module, own_qualname(cls), method), _FILES["*"].get(method)
    return found if starred is None else [*found, *starred]


def _named(module: Host, name: str, method: str = "") -> Sequence[str]:
    inside = _FILES.get(module) if type(module) is str else None
    if inside is None:
        return ()
    found = [inside[rest] for rest in ("", name, f"{name}.{method}") if rest in inside]
    return [file for files in found for file in files] if found else ()
