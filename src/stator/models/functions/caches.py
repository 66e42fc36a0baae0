"""Functions with a cache, `functools.lru_cache` and `functools.cache`: existing ones.

Those that the traced program makes are in `rare.functions.fresh_caches`.
"""

from __future__ import annotations

import functools
import gc
import types
import typing
import weakref
from typing import Any

from stator import errors
from stator.guards.guard import IdIs, NoKey
from stator.guards.source import ConstSource, DictItemSource
from stator.models.classes.bookkeeping import Bookkeeping
from stator.models.classes.typing_ import FormValue
from stator.models.functions.method import Bindable
from stator.models.identity.weakref_ import RefValue
from stator.space.cached_results import CachedResults
from stator.space.facts import constant, plain_name
from stator.space.host_types import Host
from stator.space.interfaces import Trace
from stator.space.operands import known_host
from stator.space.protocol import MODELS, models
from stator.space.space import Space
from stator.space.value import Constant, ExtensibleValue, Unsupported, Value

_CACHED = functools._lru_cache_wrapper


@models(_CACHED)
class Cached(Bindable, ExtensibleValue):
    """A function with a cache."""

    __slots__ = ()

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        raise NotImplementedError

    def tp_copy(self, space: Space, *ignored: Value) -> Value:
        return self

    def tp_deepcopy(self, space: Space, *ignored: Value) -> Value:
        return self

    def tp_reduce(self, space: Space) -> Value:
        return space.getattr(self, "__qualname__")

    def cache_info(self, space: Space) -> Value:
        return self.info(space)

    def cache_clear(self, space: Space) -> Value:
        return self.clear(space)

    def info(self, space: Space) -> Value:
        """What `cache_info()` tells."""
        raise Unsupported(errors.CachedFunction(_name(self.host), "is asked for cache_info()"))

    def clear(self, space: Space) -> Value:
        """Forget all results."""
        raise Unsupported(errors.CachedFunction(_name(self.host), "is to be cleared"))


class ExistingCache(Cached):
    """An existing function with a cache.

    What it returns depends on its past calls, and a call may have side effects unless its result is in the cache:
    so a result is taken from the cache, and guarded to be there. Where there is none the function is called for real,
    once, as by the plain program.
    """

    __slots__ = ()

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], in_tail_position: bool) -> Value:
        assert self.source is not None
        name = _name(self.host)
        space.guard_identity_of(self.source, self.host)
        if any(_is_symbolic(space, value.force()) for value in (*args, *kwargs.values())):
            return self.traced(space, args, kwargs, name)
        if any(_refers_to_new_class(space, value) for value in (*args, *kwargs.values())):
            return self.about_new_class(space, args, kwargs, name)
        hosts = tuple([_operand(space, arg, name) for arg in args])
        named = {key: _operand(space, value, name) for key, value in kwargs.items()}
        count = CountHit(self.host, hosts, named)
        if _makes_forms(self.host):
            space.trace.defer(count, [])
            return space.existing(_called(self.host, hosts, named, name), f"result of {name}")
        results = Results.of(self.host)
        key = results.key(hosts, named)
        taken = space.trace.extension(Taken).keys.setdefault(id(self.host), [])
        if key not in results.cache:
            if space.trace.effects.matter() or (results.is_full() and results.oldest() in taken):
                # Once the result is there, the call can be traced.
                space.trace.guard(NoKey(ConstSource(results.cache, f"cache of {name}"), key))
                raise Unsupported(errors.PendingSideEffects(name))
            _called(self.host, hosts, named, name)
            space.trace.done_first.add((id(self.host), key))
        if key not in taken and (id(self.host), key) in space.trace.done_first:
            count.skip = 1
        taken.append(key)
        result = results.wrap(space, key, name)
        space.trace.defer(count, [])
        return result

    def traced(self, space: Space, args: list[Value], kwargs: dict[str, Value], name: str) -> Value:
        """The result for numbers that are symbols: no key is known, so that of the function itself.

        The call is made when the graph has run, for the cache to be what it would be. What the cache gives is shared,
        so nothing in it may be changed (see space/cached_results.py).
        """
        function = constant(space, self, "__wrapped__")
        effects = space.trace.effects
        before, step = effects.count, space.trace.steps
        result = space.call(space.existing(function), args, kwargs)
        if effects.count != before:
            raise Unsupported(errors.CachedFunction(name, "has side effects"))
        _share(space, result.force(), step, name)
        space.trace.defer(CountCall(self.host, (), {}), list(args), kwargs)
        return result

    def about_new_class(self, space: Space, args: list[Value], kwargs: dict[str, Value], name: str) -> Value:
        """The result for a class that the trace has made, by reference: no key is equal until this call is made."""
        given = tuple([space.key(arg) for arg in args]), tuple([(k, space.key(v)) for k, v in kwargs.items()])
        results = space.trace.extension(OfNewClasses).results
        key = id(self.host), *given
        if key in results:
            space.trace.defer(CountCall(self.host, (), {}), list(args), kwargs)
        else:
            results[key] = self.traced(space, args, kwargs, name)
        return results[key]

    def identity(self, space: Space) -> Host:
        return self.host

    def as_host(self, space: Space) -> Host:
        space.guard_identity_of(self.source, self.host)
        return self.host

    def describe(self) -> str:
        return f"{_name(self.host)} with a cache"


MODELS[_CACHED] = ExistingCache


class Taken:
    """The keys of the results that a trace takes from caches: a bounded cache must not lose one to the next."""

    def __init__(self, trace: Trace) -> None:
        self.keys: dict[int, list[Any]] = {}


class OfNewClasses:
    """What functions with a cache give in a trace for the classes it makes."""

    def __init__(self, trace: Trace) -> None:
        self.results: dict[Any, Value] = {}


class CountHit(Bookkeeping):
    """The call itself, whose result is known: it keeps the statistics and the order of use as they would be."""

    def __init__(self, function: Host, args: tuple[Host, ...], kwargs: dict[str, Host]) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        #: how many calls the trace has made already
        self.skip = 0

    def __call__(self, *args: Host, **kwargs: Host) -> None:
        if self.skip:
            self.skip -= 1
        else:
            self.function(*self.args, **self.kwargs)


class CountCall(CountHit):
    """The call of a function that has been traced."""

    def __call__(self, *args: Host, **kwargs: Host) -> None:
        self.function(*args, **kwargs)


def _makes_forms(function: Host) -> bool:
    """Whether it is one of those that `typing` makes forms with (`Optional[int]`). They have no effect, and give equal
    forms whenever they are called: which of them are in a cache just now is no reason to compile anew.
    """
    return any(clear.__self__ is function for clear in typing._cleanups)  # type: ignore[attr-defined]


def _called(function: Host, args: tuple[Host, ...], kwargs: dict[str, Host], name: str) -> Host:
    """The call for real, as the plain program makes it."""
    try:
        return function(*args, **kwargs)
    except Exception:
        raise Unsupported(errors.FailingCall(name, "raises")) from None


def _is_symbolic(space: Space, value: Value) -> bool:
    """Whether the value is a symbolic number, or a tuple with one."""
    if value.isa(tuple) and isinstance(value, MODELS[tuple]):
        return any(_is_symbolic(space, item.force()) for item in space.unpack(value))
    return value.symbolic


def _refers_to_new_class(space: Space, value: Value) -> bool:
    """Whether the value is a weak reference to a class that the trace has made."""
    value = value.force()
    referent = value.referent if isinstance(value, RefValue) else None
    return referent is not None and referent.isa(type) and space.trace.classes.is_fresh(referent.host)


def _share(space: Space, value: Value, step: int, name: str) -> None:
    """The object, and those in it, will be given to others too."""
    if value.source is not None or isinstance(value, Constant) or value.symbolic:
        return
    if isinstance(value, (MODELS[list], MODELS[tuple])):
        parts = space.unpack(value)
    elif isinstance(value, MODELS[dict]):
        parts = [item for pair in value.pairs(space) for item in pair]  # type: ignore[attr-defined]
    else:
        raise Unsupported(errors.CachedFunction(name, f"gives {value.describe()}"))
    if not value.isa(tuple):
        space.trace.extension(CachedResults).add(value, step, name)
    for part in parts:
        _share(space, part.force(), step, name)


def _name(function: Host) -> str:
    """How the program calls a function with a cache: for messages."""
    found = function.__dict__.get("__qualname__")
    return found if type(found) is str else plain_name(function)


class Results:
    """The cache of an existing function: results by key, of which a bounded one keeps only links."""

    def __init__(self, function: Host, cache: dict[Any, Any]) -> None:
        parameters = function.cache_parameters()
        self.function = function
        self.cache = cache
        self.typed = parameters["typed"]
        self.maxsize = parameters["maxsize"]

    @classmethod
    def of(cls, function: Host) -> Results:
        """The results of a function; those of one without a size are nowhere."""
        own = function.__dict__
        caches = [part for part in gc.get_referents(function) if type(part) is dict and part is not own]
        if len(caches) != 1 or "cache_parameters" not in own or function.cache_parameters()["maxsize"] == 0:
            raise Unsupported(errors.CachedFunction(_name(function), "keeps no results"))
        return cls(function, caches[0])

    def is_full(self) -> bool:
        """Whether another result would replace one."""
        return self.maxsize is not None and len(self.cache) >= self.maxsize

    def oldest(self) -> Any:
        """The key whose result another one would replace."""
        return self._links()[0][0]

    def _links(self) -> list[tuple[Any, Any]]:
        """Keys and results of a bounded cache that is not empty, the least recently used first.

        Its links show nothing, but the function's referents list the key, the result and the type of each, in order.
        """
        kind = type(next(iter(self.cache.values())))
        parts = gc.get_referents(self.function)
        return [(parts[end - 2], parts[end - 1]) for end in range(2, len(parts)) if parts[end] is kind]

    def key(self, args: tuple[Host, ...], kwargs: dict[str, Host]) -> Any:
        """`lru_cache_make_key`."""
        if not self.typed and not kwargs and len(args) == 1 and type(args[0]) in (int, str):
            return args[0]
        key = args
        if kwargs:
            key += (_KEYWORDS, *(part for item in kwargs.items() for part in item))
        if self.typed:
            key += tuple(map(type, args)) + tuple(map(type, kwargs.values()))
        return key

    def wrap(self, space: Space, key: Any, name: str) -> Value:
        """The value of the result, found in the cache at each run."""
        if key not in self.cache:
            raise Unsupported(errors.CachedFunction(name, "did not keep its result"))
        place = DictItemSource(ConstSource(self.cache, f"cache of {name}"), key)
        if self.maxsize is None:
            return space.wrap(self.cache[key], place).force()
        stored = next(each for each in self.cache if each == key)
        results = [result for each, result in self._links() if each is stored]
        if len(results) != 1:
            raise Unsupported(errors.CachedFunction(name, "has a cache that cannot be read"))
        space.trace.guard(IdIs(place, self.cache[key]))
        return space.existing(results[0], f"result of {name}")


@functools.cache
def _probe(**keywords: int) -> None:
    """Fills its cache with one key, to show what marks the keywords in it."""


_probe(a=1)
_KEYWORDS = next(part for part in next(iter(Results.of(_probe).cache)) if type(part) is object)


def _operand(space: Space, value: Value, name: str) -> Any:
    """The host object to call a cached function with: a constant, or an existing object the cache knows by identity."""
    value = value.force()
    if value.cls is tuple and not value.constant:
        return tuple([_operand(space, item, name) for item in space.unpack(value)])
    if isinstance(value, RefValue) and value.cls is weakref.ref and value.referent is not None:
        return weakref.ref(_operand(space, value.referent, name))
    if type(value) in (Constant, FormValue) or value.cls in (type, frozenset, types.FunctionType):
        return known_host(space, value, name)
    if value.isa(tuple) and all(
        space.host_lookup(value.cls, name) is tuple.__dict__[name] for name in ("__hash__", "__eq__")
    ):
        return known_host(space, value, name)
    by_identity = space.host_lookup(value.cls, "__hash__") is object.__hash__
    host = value.identity(space)
    if value.source is None or isinstance(host, Value) or value.symbolic or not by_identity:
        raise Unsupported(errors.CachedFunction(name, f"is given {value.describe()}"))
    space.guard_identity_of(value.source, host)
    return host
