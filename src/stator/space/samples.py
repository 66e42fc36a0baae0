"""Instances of types that no constructor makes, for letting CPython word an error."""

from __future__ import annotations

import array
import collections
import contextvars
import functools
import itertools
import operator
import struct
import sys
import types
import weakref
from collections.abc import AsyncIterator, Iterator

from stator.space.host_types import Host

__all__ = ["sample_of"]


def _generator() -> Iterator[None]:
    yield


async def _coroutine() -> None:
    pass


def _function() -> Host:
    return lambda: None


class _Sequence:
    def __len__(self) -> int:
        return 0

    def __getitem__(self, index: int) -> Host:
        raise IndexError


def _samples() -> Iterator[Host]:
    """New and empty ones: where the call is not an error after all, nothing has happened."""
    mapping: dict[Host, Host] = {}
    ordered = collections.OrderedDict[Host, Host]()
    views = [mapping.keys(), mapping.values(), mapping.items(), ordered.keys(), ordered.values(), ordered.items()]
    yield from views
    yield from map(reversed, ([], mapping, mapping.values(), mapping.items(), collections.deque()))  # type: ignore[arg-type]
    sequences = [[], (), "", "é", b"", bytearray(), memoryview(b""), range(0), range(1 << 70), collections.deque()]
    yield from map(iter, [*sequences, set(), *views, ordered, _Sequence()])  # type: ignore[arg-type]
    yield from (iter(_generator, None), _function(), _generator(), types.MappingProxyType({}), memoryview(b""))
    yield iter(list[int])  # type: ignore[call-overload]
    yield from (types.MethodType(_generator, 1), types.CellType(), types.ModuleType("module"), types.SimpleNamespace())
    yield from (
        enumerate([]),
        zip([]),
        map(len, []),
        filter(None, []),
        reversed(_Sequence()),
        *_groups(),
        _closed(),
    )
    yield from _from_modules()
    yield from ([].__len__, [].append, list.append, list.__len__, vars(dict)["fromkeys"])
    yield from (vars(slice)["start"], vars(types.FunctionType)["__code__"])


async def _asynchronous() -> AsyncIterator[None]:
    yield


def _closed() -> Host:
    made = _coroutine()
    made.close()  # it would warn that nothing has awaited it
    return made


def _groups() -> tuple[Host, ...]:
    return BaseExceptionGroup("", [BaseException()]), ExceptionGroup("", [KeyError()])


def _from_modules() -> Iterator[Host]:
    yield from (array.array("i"), iter(array.array("i")), struct.iter_unpack("i", b""), _asynchronous())
    yield from (
        itertools.accumulate([]),
        itertools.combinations([], 1),
        itertools.compress([], []),
        itertools.cycle([]),
    )
    yield from (itertools.combinations_with_replacement([], 1), itertools.dropwhile(len, []), itertools.groupby([]))
    yield from (itertools.filterfalse(len, []), itertools.islice([], 1), itertools.pairwise([]), itertools.repeat(0, 0))
    yield from (itertools.permutations([]), itertools.starmap(len, []), itertools.takewhile(len, []))
    yield from (next(itertools.groupby("a"))[1], *itertools.tee([], 1))
    yield from (functools.partial(len), functools.cmp_to_key(len), functools.cmp_to_key(len)(0))  # type: ignore[arg-type]
    yield from (functools.lru_cache(_generator), weakref.ref(_generator), contextvars.ContextVar("variable"))
    yield from (operator.attrgetter("name"), operator.itemgetter(0), operator.methodcaller("name"))


def sample_of(cls: type) -> Host:
    """Some instance of the type, or None."""
    if cls is types.FrameType:
        return sys._getframe()
    if cls is types.TracebackType:
        return types.TracebackType(None, sys._getframe(), 0, 1)
    if cls not in _types():
        return None
    return next(sample for sample in _samples() if type(sample) is cls)


@functools.cache
def _types() -> frozenset[type]:
    return frozenset(map(type, _samples()))
