"""Functions with a cache that the traced program makes: `functools.lru_cache` and `functools.cache` inside of it."""

from __future__ import annotations

import functools
import types
from typing import Any

from stator import errors
from stator.models.functions.caches import Cached
from stator.models.functions.function import FunctionValue
from stator.space.attributes import MISSING
from stator.space.host_types import Host
from stator.space.interfaces import Writer
from stator.space.operands import known_host
from stator.space.protocol import NONE, builtin
from stator.space.space import Space
from stator.space.value import Constant, Unsupported, Value


@builtin(functools._lru_cache_wrapper.__new__)
def new_cache(
    space: Space, cls: Value, user_function: Value, maxsize: Value, typed: Value, cache_info_type: Value
) -> Value:
    """`lru_cache_new`."""
    if space.host_lookup(user_function.force().cls, "__call__") is MISSING:
        raise space.error(TypeError, "the first argument must be callable")
    size = known_host(space, maxsize, "functools.lru_cache")
    owner = known_host(space, cls, "functools.lru_cache")
    return FreshCache(user_function, size, space.truth(typed), cache_info_type, owner)


class FreshCache(Cached):
    """A function with a cache, made by the traced program: `lru_cache_call` and its relations."""

    __slots__ = ("entries", "function", "hits", "info_type", "maxsize", "misses", "typed")

    def __init__(self, function: Value, maxsize: int | None, typed: bool, info_type: Value, cls: type) -> None:
        super().__init__(cls)
        self.function = function
        self.maxsize = maxsize if maxsize is None else max(maxsize, 0)
        self.typed = typed
        self.info_type = info_type
        #: calls and their results by key, the least recently used first
        self.entries: dict[Any, Entry] = {}
        self.hits = self.misses = 0

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        space.mark_mutated(self)
        if self.maxsize == 0:
            self.misses += 1
            return space.call(self.function, args, kwargs)
        key = self._key(space, args, kwargs)
        found = self.entries.get(key)
        if found is not None:
            self.hits += 1
            if self.maxsize is not None:
                self.entries[key] = self.entries.pop(key)
            return found.result
        self.misses += 1
        result = space.call(self.function, args, kwargs)
        if key in self.entries:  # the function has called itself with the same arguments
            if self.maxsize is None:
                self.entries[key].result = result
            return result
        if self.maxsize is not None and len(self.entries) >= self.maxsize:
            del self.entries[next(iter(self.entries))]
        self.entries[key] = Entry(args, kwargs, result)
        return result

    def _key(self, space: Space, args: list[Value], kwargs: dict[str, Value]) -> Any:
        values = [value.force() for value in (*args, *kwargs.values())]
        keys = tuple(space.key(value) for value in values)
        types_ = tuple(value.cls for value in values) if self.typed else ()
        # A single int or str is its own key, and so differs from an equal number of another type.
        alone = values[0].cls in (int, str) if len(values) == 1 and not kwargs and not self.typed else False
        return (alone, len(args), tuple(kwargs), keys, types_)

    def info(self, space: Space) -> Value:
        numbers: list[Value] = [Constant(n) for n in (self.hits, self.misses, self.maxsize, len(self.entries))]
        return space.call(self.info_type, numbers, {})

    def clear(self, space: Space) -> Value:
        space.mark_mutated(self)
        self.entries = {}
        self.hits = self.misses = 0
        return NONE

    def shell(self, writer: Writer) -> str:
        """The function with an empty cache; what it wraps may refer to it, but never needs it to exist."""
        parts = [writer.expr(self.function), repr(self.maxsize), repr(self.typed), writer.expr(self.info_type)]
        return f"{writer.const(self.cls)}({', '.join(parts)})"

    def rebuilt(self, writer: Writer) -> str:
        text = self.shell(writer)
        name = writer.shell_of(self) or str(writer.assign("cached", text))
        writer.name_value(self, name)
        if self._attrs is not None:
            self._attrs.write(writer, name)
        if self.hits or self.misses:
            self._refill(writer, name)
        return name

    def _refill(self, writer: Writer, name: str) -> None:
        function = self.function.force()
        if not isinstance(function, FunctionValue):
            raise Unsupported(errors.NotReconstructible("a cache of results of a function written in C"))
        calls = [f"({entry.args_text(writer)}, {writer.expr(entry.result)})" for entry in self.entries.values()]
        numbers = f"{self.hits}, {self.misses}"
        writer.line(f"{writer.const(refill)}({name}, {writer.expr(function)}, [{', '.join(calls)}], {numbers})")


class Entry:
    """A call that a cache remembers."""

    __slots__ = ("args", "kwargs", "result")

    def __init__(self, args: list[Value], kwargs: dict[str, Value], result: Value) -> None:
        self.args = args
        self.kwargs = kwargs
        self.result = result

    def args_text(self, writer: Writer) -> str:
        """Positional and keyword arguments as two expressions."""
        positional = "".join(f"{writer.expr(arg)}, " for arg in self.args)
        named = ", ".join(f"{name!r}: {writer.expr(value)}" for name, value in self.kwargs.items())
        return f"({positional}), {{{named}}}"


class Waiting:
    """A constant of code whose attribute is another result each time."""

    def __init__(self) -> None:
        self.waiting: list[Host] = []

    @property
    def real(self) -> Any:
        """The next result."""
        return self.waiting.pop()


_STAND_IN: types.CodeType = (lambda *args, **kwargs: (9753).real).__code__


def refill(cached: Host, function: types.FunctionType, calls: list[Host], hits: int, misses: int) -> None:
    """Fill the cache of a function with results known already; the function has other code for the while."""
    results = Waiting()
    code = function.__code__
    consts = tuple(results if const == 9753 else const for const in _STAND_IN.co_consts)
    function.__code__ = _STAND_IN.replace(co_consts=consts, co_freevars=code.co_freevars)
    try:
        for _ in range(misses - len(calls)):
            try:
                cached(object())  # a miss that leaves nothing behind, for the list is empty
            except IndexError:
                pass
        for args, kwargs, result in calls:
            results.waiting.append(result)
            cached(*args, **kwargs)
        for _ in range(hits if calls else 0):
            args, kwargs, _ = calls[-1]
            cached(*args, **kwargs)
    finally:
        function.__code__ = code
