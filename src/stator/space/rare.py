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
from collections.abc import Mapping

from stator.guards.raw import own_qualname, owner_of
from stator.space.host_types import Host

__all__ = ["announce", "files_about", "load", "load_all"]

#: name of a module, type, function or method (`*.name`) → the files about it
_FILES: dict[str, list[str]] = {}
#: the modules in which one of the names can lie
_MODULES: set[str] = set()
#: files that have been imported to their end: one that another thread is importing is waited for
_LOADED: set[str] = set()

_module_of = type.__dict__["__module__"].__get__
_BUILTINS = (types.BuiltinFunctionType, types.MethodWrapperType)


def announce(package: str, index: Mapping[str, str]) -> None:
    """Make an index known: file in the package → the names of what it is about."""
    for file, names in index.items():
        for name in names.split():
            _FILES.setdefault(name, []).append(f"{package}.{file}")
            _MODULES.add(name)
            while "." in name:
                name = name.rpartition(".")[0]
                _MODULES.add(name)


def load(host: Host) -> bool:
    """Import the files about a type or a callable; whether there were any, so that the tables may answer now."""
    waiting = [file for file in files_about(host) if file not in _LOADED]
    for file in waiting:
        importlib.import_module(file)
        _LOADED.add(file)
    return bool(waiting)


def load_all() -> None:
    """Import every file, for those who report on all models."""
    for files in _FILES.values():
        for file in files:
            importlib.import_module(file)
            _LOADED.add(file)


def files_about(host: Host) -> list[str]:
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
        return []
    owner = host.__self__
    kind = type(owner)
    if owner is None or issubclass(kind, types.ModuleType):
        return _named(host.__module__, host.__name__)
    return _of_type(owner if issubclass(kind, type) else kind, host.__name__)


def _of_type(cls: type, method: str = "") -> list[str]:
    try:
        module = _module_of(cls)
    except AttributeError:  # `type("C", (), {})` in a namespace without `__name__`
        return []
    found = _named(module, own_qualname(cls), method)
    return [*found, *_FILES.get(f"*.{method}", ())] if method else found


def _named(module: Host, name: str, method: str = "") -> list[str]:
    if type(module) is not str or module not in _MODULES:
        return []
    found = [*_FILES.get(module, ()), *_FILES.get(f"{module}.{name}", ())]
    return [*found, *_FILES.get(f"{module}.{name}.{method}", ())] if method else found
