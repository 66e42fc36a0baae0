"""The C half of functools: `partial`, `reduce`, `cmp_to_key`, and functions with a cache."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from stator.guards.guard import Predicate
from stator.guards.source import CallSource, ConstSource, GetAttrSource
from stator.objects.attributes import MISSING
from stator.objects.method import BoundMethod
from stator.objects.protocol import builtin, models
from stator.objects.value import Constant, Value
from stator.stdlib.support import known_host, literal, refuse

if TYPE_CHECKING:
    from stator.guards.source import Source
    from stator.objects.space import Space
    from stator.residual.writer import Writer

_CACHED = functools._lru_cache_wrapper
_KEY = type(functools.cmp_to_key(lambda a, b: 0))


@models(functools.partial)
class PartialValue(Value):
    """`functools.partial(function, *args, **keywords)`."""

    __slots__ = ("_args", "_attrs", "_function", "_keywords", "host")

    def __init__(self, cls: type, function: Value | None, args: Value | None, keywords: Value | None) -> None:
        self.cls = cls
        self.source: Source | None = None
        self.host: Any = None
        self._function = function
        self._args = args
        self._keywords = keywords
        self._attrs: Any = None

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> PartialValue:
        space.guard_type(host, source)
        self = cls(type(host), None, None, None)
        self.source, self.host = source, host
        return self

    @staticmethod
    def tp_new(space: Space, cls: Value, function: Value, /, *args: Value, **keywords: Value) -> Value:
        owner = known_host(space, cls, "functools.partial")
        function = function.force()
        if space.host_lookup(function.cls, "__call__") is MISSING:
            raise space.error(TypeError, "the first argument must be callable")
        items, named = list(args), dict(keywords)
        if isinstance(function, PartialValue) and function.is_bare(space):
            items = [*space.unpack(function.part(space, "args")), *items]
            named = {**function.named(space), **named}
            function = function.part(space, "func")
        pairs: list[tuple[Value, Value]] = [(Constant(name), value) for name, value in named.items()]
        return PartialValue(owner, function, space.new_tuple(items), space.new_dict(pairs))

    def part(self, space: Space, name: str) -> Value:
        """`func`, `args` or `keywords`."""
        slot = {"func": "_function", "args": "_args", "keywords": "_keywords"}[name]
        value: Value | None = getattr(self, slot)
        if value is None:
            assert self.source is not None
            value = space.wrap(getattr(self.host, name), GetAttrSource(self.source, name))
            setattr(self, slot, value)
        return value

    def named(self, space: Space) -> dict[str, Value]:
        """The keywords as they are now."""
        return space.trace.keyword_args(self.part(space, "keywords"), self)

    def is_bare(self, space: Space) -> bool:
        """Whether the object has no `__dict__` yet, so that CPython sees through it."""
        if self.source is None or self._attrs is not None:
            return self._attrs is None
        bare = _bare(self.host)
        text = f"{self.source.expr()} has {'no' if bare else 'its'} own __dict__"
        space.trace.guard(Predicate((self.source,), _bare if bare else _clothed, text))
        return bare

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], tail: bool) -> Value:
        overriding = space.host_lookup(self.cls, "__call__")
        if overriding is not functools.partial.__call__:
            return space.call(space.bind(space.lookup(self.cls, "__call__"), self), args, kwargs, tail)  # type: ignore[arg-type]
        positional = [*space.unpack(self.part(space, "args")), *args]
        return space.call(self.part(space, "func"), positional, {**self.named(space), **kwargs}, tail)

    def __call__(self, space: Space, *args: Value, **kwargs: Value) -> Value:
        positional = [*space.unpack(self.part(space, "args")), *args]
        return space.call(self.part(space, "func"), positional, {**self.named(space), **kwargs})

    def get_field(self, space: Space, name: str) -> Value | None:
        return self.part(space, name) if name in ("func", "args", "keywords") else None

    def attr_dict(self, space: Space) -> Any:
        if self._attrs is None:
            from stator.objects.attr_dict import AttrDict

            self._attrs = AttrDict(self, self.host)
        return self._attrs

    def identity(self, space: Space) -> Any:
        return self if self.source is None else self.host

    def describe(self) -> str:
        return "a functools.partial object"

    def reconstruct(self, writer: Writer) -> str:
        if self.source is not None:
            return writer.source(self.source)
        assert self._function is not None and self._args is not None and self._keywords is not None
        parts = [writer.expr(part) for part in (self._function, self._args, self._keywords)]
        shell = writer.shell_of(self)
        if shell is not None:
            return shell
        # The constructor would see through a function that is itself a partial.
        name: str = writer.assign("partial", f"{writer.const(self.cls)}({writer.const(callable)})")
        writer.name_value(self, name)
        writer.line(f"{name}.__setstate__(({', '.join(parts)}, None))")
        if self._attrs is not None:
            for key, value in self._attrs.entries(None):
                writer.line(f"{name}.__dict__[{key!r}] = {writer.expr(value)}")
        return name


def _bare(host: Any) -> bool:
    return host.__reduce__()[2][3] is None


def _clothed(host: Any) -> bool:
    return not _bare(host)


@builtin(functools.reduce)
def reduce_(space: Space, function: Value, iterable: Value, initial: Value | None = None, /) -> Value:
    iterable = iterable.force()
    if space.special(iterable, "__iter__") is None and space.special(iterable, "__getitem__") is None:
        raise space.error(TypeError, "reduce() arg 2 must support iteration")
    result = initial
    for item in space.iterate(iterable):
        result = item if result is None else space.call(function, [result, item], {})
    if result is None:
        raise space.error(TypeError, "reduce() of empty iterable with no initial value")
    return result


# -- cmp_to_key -----------------------------------------------------------------------------------------------------


@models(_KEY)
class KeyValue(Value):
    """What `cmp_to_key` returns, and what that returns for an object."""

    __slots__ = ("compare", "obj")

    def __init__(self, compare: Value, obj: Value | None) -> None:
        self.cls = _KEY
        self.source: Source | None = None
        self.compare = compare
        self.obj = obj

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> Value:
        raise refuse("functools.cmp_to_key made outside the compiled function")

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], tail: bool) -> Value:
        values = [*args, *kwargs.values()]
        if len(values) != 1 or (kwargs and "obj" not in kwargs):
            raise refuse("functools.cmp_to_key called with other than one object")
        return KeyValue(self.compare, values[0])

    def get_field(self, space: Space, name: str) -> Value | None:
        return self.obj if name == "obj" else None

    def reconstruct(self, writer: Writer) -> str:
        key = f"{writer.const(functools.cmp_to_key)}({writer.expr(self.compare)})"
        return str(writer.assign("key", key if self.obj is None else f"{key}({writer.expr(self.obj)})"))

    def ordered(self, space: Space, symbol: str, other: Value) -> Value:
        """Compare what the function says about both objects with 0."""
        other = other.force()
        if not isinstance(other, KeyValue):
            raise space.error(TypeError, "other argument must be K instance")
        if self.obj is None or other.obj is None:
            raise space.error(AttributeError, "object")
        return space.compare(symbol, space.call(self.compare, [self.obj, other.obj], {}), Constant(0))

    def tp_lt(self, space: Space, other: Value, /) -> Value:
        return self.ordered(space, "<", other)

    def tp_le(self, space: Space, other: Value, /) -> Value:
        return self.ordered(space, "<=", other)

    def tp_gt(self, space: Space, other: Value, /) -> Value:
        return self.ordered(space, ">", other)

    def tp_ge(self, space: Space, other: Value, /) -> Value:
        return self.ordered(space, ">=", other)

    def tp_eq(self, space: Space, other: Value, /) -> Value:
        return self.ordered(space, "==", other)

    def tp_ne(self, space: Space, other: Value, /) -> Value:
        return self.ordered(space, "!=", other)


@builtin(functools.cmp_to_key)
def cmp_to_key(space: Space, mycmp: Value) -> Value:
    return KeyValue(mycmp, None)


# -- caches ---------------------------------------------------------------------------------------------------------


@models(_CACHED)
class CachedFunction(Value):
    """An existing function with a cache (`functools.lru_cache`, `functools.cache`).

    What it returns depends on its past calls, and the first call of each kind may have side effects: so it is called
    for real, once while tracing and once in the guards of each run, exactly as often as by the plain program.
    """

    __slots__ = ("_attrs", "host")

    def __init__(self, host: Any, source: Source) -> None:
        self.cls = type(host)
        self.host = host
        self.source = source
        self._attrs: Any = None

    @classmethod
    def from_host(cls, space: Space, host: Any, source: Source) -> CachedFunction:
        space.guard_type(host, source)
        return cls(host, source)

    def call(self, space: Space, args: list[Value], kwargs: dict[str, Value], tail: bool) -> Value:
        source = self.source
        assert source is not None
        name = getattr(self.host, "__qualname__", "function")
        if space.trace.effects:
            raise refuse(f"{name}, whose cache may depend on side effects not yet performed")
        hosts = [_operand(space, arg, name) for arg in args]
        named = {key: _operand(space, value, name) for key, value in kwargs.items()}
        call = CachedCall(tuple(hosts), named)
        try:
            result = call(self.host)
        except Exception:
            raise refuse(f"{name}, which raised") from None
        return space.wrap(result, CallSource(call, source, name)).force()

    def descr_get(self, space: Space, instance: Value | None, owner: type, tail: bool) -> Value:
        return self if instance is None else BoundMethod(self, instance)

    def attr_dict(self, space: Space) -> Any:
        if self._attrs is None:
            from stator.objects.attr_dict import AttrDict

            self._attrs = AttrDict(self, self.host)
        return self._attrs

    def identity(self, space: Space) -> Any:
        return self.host

    def as_host(self, space: Space) -> Any:
        space.guard_identity_of(self.source, self.host)
        return self.host

    def describe(self) -> str:
        return f"function {getattr(self.host, '__qualname__', '?')} with a cache"

    def reconstruct(self, writer: Writer) -> str:
        assert self.source is not None
        return writer.source(self.source)


class CachedCall:
    """A call with these operands, as a function of what is called."""

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.args = args
        self.kwargs = kwargs

    def __call__(self, function: Any) -> Any:
        return function(*self.args, **self.kwargs)


def _operand(space: Space, value: Value, name: str) -> Any:
    """The host object to call a cached function with: a constant, or an existing object the cache knows by identity."""
    value = value.force()
    if literal(value) or value.cls in (type, tuple, frozenset, types.FunctionType):
        return known_host(space, value, name)
    by_identity = space.host_lookup(value.cls, "__hash__") is object.__hash__
    host = value.identity(space)
    if value.source is None or isinstance(host, Value) or value.symbolic or not by_identity:
        raise refuse(f"{name}, which has a cache, with {value.describe()}")
    if type(value.source) is not ConstSource:
        space.guard_identity_of(value.source, host)
    return host
