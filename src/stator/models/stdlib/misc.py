"""Small C functions of the standard library."""

from __future__ import annotations

import _symtable  # type: ignore[import-not-found]
import _typing  # type: ignore[import-not-found]
import codecs
import collections
import contextvars
import datetime
import functools
import importlib
import importlib.util
import itertools
import sys
import types
import weakref
from typing import Any

from stator.guards.raw import members
from stator.models.functions.imports import first_import, loaded
from stator.space.host_types import Host
from stator.space.operands import host_errors, known_host, refuse_use
from stator.space.protocol import NONE, pure, register
from stator.space.space import Space
from stator.space.value import Value

_ALIASED: tuple[type, ...] = (
    itertools.chain,
    enumerate,
    types.MappingProxyType,
    BaseExceptionGroup,
    functools.partial,
    weakref.ref,
)
_ALIASED += (contextvars.ContextVar, contextvars.Token, types.AsyncGeneratorType)
# `list[int]` and its like make an alias and do nothing else.
for _cls in (list, tuple, dict, set, frozenset, type, *members(collections, type).values(), *_ALIASED):
    _host = members(_cls, types.ClassMethodDescriptorType).get("__class_getitem__")
    if _host is not None:
        pure(_host)


# What C modules hand to each other and to their own Python part.
_internals: list[Host] = [datetime.datetime_CAPI, _symtable.symtable("0", "?", "eval")]
_charmap: Any = codecs.charmap_build("".join(map(chr, range(256))))
pure(type(_charmap).size, *(type(internal).__repr__ for internal in _internals))


def _same(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The call of a `typing.NewType`."""
    if len(args) != 1 or kwargs:
        raise refuse_use("typing.NewType.__call__", "of other than one value")
    return args[0]


register(_typing._idfunc, _same)


# -- imports --------------------------------------------------------------------------------------------------------


def _find_spec(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`importlib.util.find_spec`: of what is imported the module's own, else what the finders say now."""
    if len(args) != 1 or kwargs:
        raise refuse_use("importlib.util.find_spec", "of a relative name")
    name = known_host(space, args[0], "importlib.util.find_spec")
    if loaded(space, name) is not None:
        return space.existing(importlib.util.find_spec).inline(space, args, kwargs, False)  # type: ignore[attr-defined, no-any-return]
    if "." in name and name.rpartition(".")[0] not in sys.modules:
        raise refuse_use("importlib.util.find_spec", "in a package that is not imported yet")
    with host_errors(space, Exception):
        spec = importlib.util.find_spec(name)
    return NONE if spec is None else space.existing(spec, f"spec of {name}")


register(importlib.util.find_spec, _find_spec)


def _import_module(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`importlib.import_module` of a module by its full name."""
    name = known_host(space, args[0], "importlib.import_module") if len(args) == 1 and not kwargs else None
    if isinstance(name, str):
        module = loaded(space, name)
        if module is not None and module.force().isa(types.ModuleType):
            return module
        if not name.startswith("."):
            first_import(space, name)
    return space.existing(importlib.import_module).inline(space, args, kwargs, False)  # type: ignore[attr-defined, no-any-return]


register(importlib.import_module, _import_module)
