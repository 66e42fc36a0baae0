"""`__sizeof__` and `sys.getsizeof`: how much memory an object takes.

Of many types the class alone says it, or the code of a frame. What grows is measured where it existed before the trace
and is unchanged in it, under a guard; one that generated code makes again may have other spare room: a break.
"""

from __future__ import annotations

import array
import collections
import itertools
import struct
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from stator import errors
from stator.bytecode.continuation import original_of
from stator.guards.guard import Equals
from stator.guards.source import CallSource
from stator.host.version_facts import WEAK_REFERENCES_BEFORE_OBJECTS
from stator.models.containers.tuple_ import TupleValue
from stator.models.functions.frame_ import FrameValue
from stator.models.functions.suspendable import Suspendable
from stator.models.iterators.combinatorics import Arrangements
from stator.space.host_types import Host
from stator.space.operands import call_slot, check_kind
from stator.space.protocol import bad_call, builtin, of_existing
from stator.space.space import Space
from stator.space.value import Constant, NotKnown, Raised, Unsupported, Value

_WORD = struct.calcsize("P")
_IS_GC, _MANAGED = 1 << 14, (1 << 4) | (1 << 3 if WEAK_REFERENCES_BEFORE_OBJECTS else 0)
_BASICSIZE: Any = vars(type)["__basicsize__"]
_ITEMSIZE: Any = vars(type)["__itemsize__"]


def _in_memory(host: Host) -> int:
    """What the `__sizeof__` written in C says."""
    for base in type(host).__mro__:
        found: Host = vars(base).get("__sizeof__")
        if type(found) is types.MethodDescriptorType:
            return int(found(host))
    raise TypeError("object.__sizeof__ is gone")


def _allocated(host: Host) -> int:
    return bytearray.__alloc__(host)


def _measured(space: Space, method: Host, value: Value, measure: Callable[[Any], int]) -> Value:
    """What an existing object says that the traced program has not changed."""
    known = value.source is not None and value.dict_owner is None and not space.trace.effects.is_mutated(value)
    real = space.identity(value) if known else None
    if not known or isinstance(real, Value) or method(real) != measure(real):
        raise Unsupported(errors.MemoryObserved(method.__qualname__, value.describe()))
    size = measure(real)
    space.trace.guard(Equals(CallSource(measure, value.source, "size"), size))  # type: ignore[arg-type]
    return Constant(size)


def _model(method: Host, own: Callable[[Space, Any], int | None], measure: Callable[[Any], int] = _in_memory) -> None:
    """What `own` says of an object, or what is measured."""

    @builtin(method)
    def sizeof(space: Space, value: Value, /) -> Value:
        value = value.force()
        if not value.isa(method.__objclass__):
            return bad_call(space, method, [value], {})
        size = own(space, value)
        return _measured(space, method, value, measure) if size is None else Constant(size)


# -- by the class -----------------------------------------------------------------------------------------------------


def _by_class(space: Space, value: Value) -> int | None:
    basic, item = _BASICSIZE.__get__(value.cls), _ITEMSIZE.__get__(value.cls)
    if item == 0:
        return int(basic)
    if isinstance(value, TupleValue):
        return int(basic + item * len(value.items))
    if value.isa(type) and space.trace.classes.is_fresh(value.as_host(space)):
        return None
    try:
        return object.__sizeof__(value.as_host(space))
    except NotKnown:
        return None


_model(object.__sizeof__, _by_class)


# -- by the code ------------------------------------------------------------------------------------------------------


def _words(code: types.CodeType) -> int:
    """How many objects a frame of the code has room for."""
    cells = [name for name in code.co_cellvars if name not in code.co_varnames]
    return len(code.co_varnames) + len(cells) + len(code.co_freevars) + code.co_stacksize


def _sample() -> Iterator[None]:
    yield


_GENERATOR = _sample().__sizeof__() - _words(_sample.__code__) * _WORD
_FRAME = sys._getframe().__sizeof__() - _words(sys._getframe().f_code) * _WORD


def _of_generator(space: Space, value: Any) -> int | None:
    if not isinstance(value, Suspendable) or value.source is not None or value.frame is None:
        return None
    return _GENERATOR + _words(original_of(value.frame.code, 0)[0]) * _WORD


def _of_frame(space: Space, value: Any) -> int | None:
    return _FRAME + _words(original_of(value.frame.code, 0)[0]) * _WORD if isinstance(value, FrameValue) else None


_cls: Any
for _cls in (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType):
    _model(vars(_cls)["__sizeof__"], _of_generator)
_model(vars(types.FrameType)["__sizeof__"], _of_frame)


# -- by the arguments -------------------------------------------------------------------------------------------------


def _of_arrangements(space: Space, value: Any) -> int | None:
    """The host's own iterator has as many indices."""
    if not isinstance(value, Arrangements) or value.source is not None:
        return None
    host = value.indices
    return int(host.__sizeof__() + _BASICSIZE.__get__(value.cls) - _BASICSIZE.__get__(type(host)))


for _cls in (
    itertools.product,
    itertools.combinations,
    itertools.combinations_with_replacement,
    itertools.permutations,
):
    _model(vars(_cls)["__sizeof__"], _of_arrangements)


# -- by what has become of the object ---------------------------------------------------------------------------------


def _unknown(space: Space, value: Value) -> int | None:
    return None


def _of_text(space: Space, value: Value) -> int | None:
    """One that is not ASCII may have its UTF-8 form with it."""
    host: Host = space.known(value)
    return str.__sizeof__(host) if isinstance(host, str) and host.isascii() else None


def _of_bytes(method: Host) -> Callable[[Space, Any], int | None]:
    """An array of the trace has grown as its contents have."""

    def own(space: Space, value: Any) -> int | None:
        return None if value.source is not None or value.cls is not bytearray else int(method(value.contents(space)))

    return own


for _cls in (list, dict, set, frozenset, type, collections.deque, collections.OrderedDict, array.array):
    _model(vars(_cls)["__sizeof__"], _unknown)
    of_existing(vars(_cls)["__sizeof__"])
_model(bytearray.__alloc__, _of_bytes(bytearray.__alloc__), _allocated)
_model(bytearray.__sizeof__, _of_bytes(bytearray.__sizeof__))
_model(str.__sizeof__, _of_text)


# -- sys.getsizeof ----------------------------------------------------------------------------------------------------


@builtin(sys.getsizeof)
def getsizeof(space: Space, object: Value, default: Value | None = None) -> Value:
    """`_PySys_GetSizeOf`: what the object says, and what lies before it."""
    value = object.force()
    try:
        size = _asked(space, value)
    except Raised as e:
        if default is None or not e.matches(TypeError):
            raise
        return default
    if value.isa(type):
        return Constant(size + sys.getsizeof(value.as_host(space)) - _in_memory(value.as_host(space)))
    flags = value.cls.__flags__
    before = 2 * _WORD * (bool(flags & _IS_GC) + bool(flags & _MANAGED))
    return Constant(size + before)


def _asked(space: Space, value: Value) -> int:
    found = call_slot(space, value, "__sizeof__", "Type %T doesn't define __sizeof__")
    check_kind(space, found, int, "an integer is required")
    size = space.int_(found)
    if not -sys.maxsize - 1 <= size <= sys.maxsize:
        raise space.error(OverflowError, "Python int too large to convert to C ssize_t")
    if size < 0:
        raise space.error(ValueError, "__sizeof__() should return >= 0")
    return size
