"""Functions that the standard library has both in C and in Python: the one in Python is traced.

The module's own source is executed once more with its C half out of reach; pickle shows both halves itself.
"""

from __future__ import annotations

import bisect
import heapq
import importlib.util
import pickle
import sys
import types

from stator.guards.raw import members
from stator.space.host_types import Host
from stator.space.protocol import register
from stator.space.space import Space
from stator.space.value import Raised, Value


def pure_python(module: types.ModuleType, c_name: str) -> types.ModuleType:
    """The module as it is where the C module is missing."""
    assert module.__spec__ is not None and module.__spec__.origin is not None
    spec = importlib.util.spec_from_file_location(f"{module.__name__} (Python)", module.__spec__.origin)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    kept = sys.modules.get(c_name)
    sys.modules[c_name] = None  # type: ignore[assignment]
    try:
        spec.loader.exec_module(made)
    finally:
        if kept is None:
            del sys.modules[c_name]
        else:
            sys.modules[c_name] = kept
    return made


def _use(host: Host, python: Host, listed: bool) -> None:
    """Trace `python` wherever the program calls `host`."""

    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if listed and args and not args[0].isa(list):
            given = args[0].force().type_name(space)
            raise space.error(TypeError, f"{host.__name__}() argument must be list, not {given}")
        return space.call(space.existing(python), args, kwargs)

    register(host, model)


def _use_all(module: types.ModuleType, c_name: str, listed: bool) -> None:
    replacements = members(pure_python(module, c_name), types.FunctionType)
    for name, host in members(sys.modules[c_name], types.BuiltinFunctionType).items():
        if name in replacements:
            _use(host, replacements[name], listed)


_use_all(heapq, "_heapq", True)
_use_all(bisect, "_bisect", False)


def _pickling(host: Host, python: Host) -> None:
    def model(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        try:
            return space.call(space.existing(python), args, kwargs)
        except Raised:
            return space.unmodelled(host, args, kwargs)  # the two word their errors differently

    register(host, model)


for _name in ("dump", "dumps", "load", "loads"):
    _pickling(getattr(pickle, _name), getattr(pickle, f"_{_name}"))
