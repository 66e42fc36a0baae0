"""Small C functions of the standard library."""

from __future__ import annotations

import _string  # type: ignore[import-not-found]
import _symtable  # type: ignore[import-not-found]
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

from stator.models.iterators.iterator import IteratorValue, iterator_type
from stator.space.host_types import Host
from stator.space.operands import host_errors, known_host, refuse_use
from stator.space.protocol import NONE, bad_call, builtin, pure, register
from stator.space.space import Space
from stator.space.value import Constant, Raised, Value

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
for _cls in (list, tuple, dict, set, frozenset, type, *vars(collections).values(), *_ALIASED):
    _host = vars(_cls).get("__class_getitem__") if isinstance(_cls, type) else None
    if isinstance(_host, types.ClassMethodDescriptorType):
        pure(_host)


# What C modules hand to each other and to their own Python part.
_internals: list[Host] = [datetime.datetime_CAPI, _symtable.symtable("0", "?", "eval")]
_charmap: Any = codecs.charmap_build("".join(map(chr, range(256))))
pure(type(_charmap).size, *(type(internal).__repr__ for internal in _internals))


# -- imports --------------------------------------------------------------------------------------------------------


def _find_spec(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`importlib.util.find_spec`: of what is imported the module's own, else what the finders say now."""
    if len(args) != 1 or kwargs:
        raise refuse_use("importlib.util.find_spec", "of a relative name")
    name = known_host(space, args[0], "importlib.util.find_spec")
    if space.trace.loaded(name) is not None:
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
        module = space.trace.loaded(name)
        if module is not None and module.isa(types.ModuleType):
            return module
        if not name.startswith("."):
            space.trace.first_import(name)
    return space.existing(importlib.import_module).inline(space, args, kwargs, False)  # type: ignore[attr-defined, no-any-return]


register(importlib.import_module, _import_module)


# -- the parser of templates ----------------------------------------------------------------------------------------


class Parsed(IteratorValue):
    """An iterator over what `_string` has found, all at once."""

    __slots__ = ("error", "index", "parts")

    def __init__(self, cls: type, found: Host) -> None:
        super().__init__(cls)
        self.index = 0
        self.parts: list[Any] = []
        self.error: Exception | None = None
        try:
            self.parts.extend(found)
        except ValueError as e:
            self.error = e

    def produce(self, space: Space) -> Value | None:
        if self.index < len(self.parts):
            space.mark_mutated(self)
            self.index += 1
            return space.fresh(self.parts[self.index - 1])
        if self.error is not None:
            raise Raised(space.exception(self.error))
        return None


@iterator_type(type(_string.formatter_parser("")))
class ParsedTemplate(Parsed):
    """`_string.formatter_parser(template)`."""

    __slots__ = ()


@iterator_type(type(_string.formatter_field_name_split("a")[1]))
class ParsedField(Parsed):
    """The second result of `_string.formatter_field_name_split(name)`."""

    __slots__ = ()


def _parsed(space: Space, parser: Host, text: Value) -> Any:
    if not text.isa(str):
        bad_call(space, parser, [text], {})
    return parser(known_host(space, text, f"_string.{parser.__name__}"))


@builtin(_string.formatter_parser)
def formatter_parser(space: Space, template: Value, /) -> Value:
    return ParsedTemplate(type(_string.formatter_parser("")), _parsed(space, _string.formatter_parser, template))


@builtin(_string.formatter_field_name_split)
def formatter_field_name_split(space: Space, name: Value, /) -> Value:
    first, rest = _parsed(space, _string.formatter_field_name_split, name)
    return space.new_tuple([Constant(first), ParsedField(type(rest), rest)])
