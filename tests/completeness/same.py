"""Whether two answers are the same: one object, or two of one type whose parts are the same, all the way down.

An answer is compared with that of a twin world, in which the same program did the same to objects made in the same way.
"""

from __future__ import annotations

import functools
import itertools
import re
import sys
import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
#: the module that the classes of the factories say they are from: each world has its own
MODULE = "factories"
HEAP_TYPE = 1 << 9
PLAIN = (int, float, complex, bool, str, bytes, type(None), type(...), type(NotImplemented))
ABSENT = object()


def same(a: Any, b: Any, seen: set[tuple[int, int]] | None = None) -> bool:
    """Whether nothing tells the two apart but their addresses."""
    if a is b:
        return True
    cls = type(a)
    if cls is not type(b) and not (of_a_world(cls) and of_a_world(type(b)) and same(cls, type(b), seen)):
        return False
    if cls in PLAIN:
        return ADDRESS.sub("0x", repr(a)) == ADDRESS.sub("0x", repr(b))
    seen = set() if seen is None else seen
    pair = (id(a), id(b))
    if pair in seen:
        return True
    seen.add(pair)
    parts = itertools.zip_longest(parts_of(a), parts_of(b), fillvalue=ABSENT)
    return all(same(x, y, seen) for x, y in parts)


def of_a_world(cls: type) -> bool:
    """Whether it is a class that a factory has made, so that a twin world has another of the name."""
    return bool(cls.__flags__ & HEAP_TYPE) and vars(cls).get("__module__") not in sys.modules


def parts_of(value: Any) -> Iterable[Any]:
    """What the object consists of."""
    parts: list[Any] = []
    for kind, contents in CONTENTS.items():
        if isinstance(value, kind):
            parts += contents(value)
            break
    else:
        parts += iterator_state(value) if hasattr(type(value), "__next__") else [text(value)]
    if not isinstance(value, type):
        parts += attributes(value)
    return parts


def text(value: Any) -> Any:
    try:
        return repr(value)
    except Exception as e:
        return type(e)


def attributes(value: Any) -> list[Any]:
    try:
        own = object.__getattribute__(value, "__dict__")
    except (AttributeError, TypeError):
        return []
    return [] if isinstance(value, types.ModuleType) or not isinstance(own, dict) else list(own.items())


def iterator_state(value: Any) -> list[Any]:
    """Where it stands, without moving it."""
    try:
        state = value.__reduce__()
    except Exception:
        return [text(value)]
    return list(state) if isinstance(state, tuple) else [state]


def class_parts(cls: type) -> list[Any]:
    if not of_a_world(cls):
        return [id(cls)]
    hidden = ("__dict__", "__weakref__", "__doc__", "__static_attributes__", "_abc_impl")
    return [cls.__qualname__, cls.__bases__, *((k, v) for k, v in vars(cls).items() if k not in hidden)]


def function_parts(function: types.FunctionType) -> list[Any]:
    own = [function.__name__, function.__qualname__, function.__module__, function.__doc__, function.__code__]
    return [*own, function.__defaults__, function.__kwdefaults__, *(function.__closure__ or ())]


def exception_parts(e: BaseException) -> list[Any]:
    return [e.args, text(e), e.__cause__, e.__context__, e.__suppress_context__]


def generator_parts(generator: Any) -> list[Any]:
    frame = generator.gi_frame
    return [generator.gi_code, *(() if frame is None else (frame.f_lasti, frame.f_locals))]


def weak_parts(ref: Any) -> list[Any]:
    return [ref() is None, ref.__callback__]


#: types -> what they consist of; those not here are told by their text
CONTENTS: dict[Any, Callable[[Any], Iterable[Any]]] = {
    list: list.__iter__,
    tuple: tuple.__iter__,
    dict: lambda value: dict.items(value),
    (set, frozenset): lambda value: sorted(map(repr, value)),
    types.MappingProxyType: lambda value: list(value.items()),
    (type({}.keys()), type({}.values()), type({}.items())): list,
    type: class_parts,
    types.FunctionType: function_parts,
    types.MethodType: lambda value: [value.__func__, value.__self__],
    (types.BuiltinMethodType, types.MethodWrapperType): lambda value: [value.__name__, value.__self__],
    types.CodeType: lambda value: [value.co_name, value.co_qualname, value.co_code, value.co_consts, value.co_names],
    types.CellType: lambda value: [contents_of(value)],
    types.GeneratorType: generator_parts,
    types.FrameType: lambda value: [value.f_code, value.f_lasti],
    types.TracebackType: lambda value: [value.tb_lineno, value.tb_next],
    functools.partial: lambda value: [value.func, value.args, value.keywords],
    BaseException: exception_parts,
    property: lambda value: [value.fget, value.fset, value.fdel],
    (classmethod, staticmethod): lambda value: [value.__func__],
    slice: lambda value: [value.start, value.stop, value.step],
    weakref.ref: weak_parts,
    types.ModuleType: lambda value: [(k, v) for k, v in vars(value).items() if k != "__builtins__"],
}


def contents_of(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return ABSENT
