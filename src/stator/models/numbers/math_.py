"""Modules `math` and `cmath`: CPython computes; traced operands are first made numbers as the C functions do it."""

from __future__ import annotations

import _statistics  # type: ignore[import-not-found]
import cmath
import math
import types
from collections.abc import Callable

from stator.guards.raw import members
from stator.models.numbers.float_ import as_double
from stator.space.host_types import Host
from stator.space.operands import literal
from stator.space.protocol import ask_hooks, builtin, pure, register
from stator.space.space import Space
from stator.space.value import Constant, Value

Convert = Callable[["Space", Value], Value]

pure(_statistics._normal_dist_inv_cdf)


def _index(space: Space, value: Value) -> Value:
    return space.index(value).force()


def _number(host: Host, convert: Convert) -> None:
    """A function of numbers: each operand that CPython could not take is converted first."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        values = [arg.force() for arg in args]
        named = {name: value.force() for name, value in kwargs.items()}
        if all(map(literal, (*values, *named.values()))):
            return space.unmodelled(host, values, named)
        result = ask_hooks(space, host, values, named)
        if result is not None:
            return result
        for place, value in enumerate(values):
            values[place] = _converted(space, value, convert)
        named = {name: _converted(space, value, convert) for name, value in named.items()}
        return ask_hooks(space, host, values, named) or space.unmodelled(host, values, named)

    pure(host)
    register(host, handler)


def _converted(space: Space, value: Value, convert: Convert) -> Value:
    # A text is refused before the operands after it are looked at.
    return value if literal(value) and value.cls is not str else convert(space, value).force()


def _floats(host: Host) -> None:
    """A function of iterables of numbers."""

    def handler(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        rows = [[_converted(space, item.force(), as_double) for item in space.unpack(arg)] for arg in args]
        return space.unmodelled(host, [space.new_list(row) for row in rows], kwargs)

    pure(host)
    register(host, handler)


_OF_INTS = ("gcd", "lcm", "factorial", "comb", "perm", "isqrt")
_OF_ITERABLES = ("fsum", "dist", "sumprod", "prod")
_ROUNDING = ("floor", "ceil", "trunc")

for _name, _host in members(math, types.BuiltinFunctionType).items():
    if _name not in (*_OF_ITERABLES, *_ROUNDING):
        _number(_host, _index if _name in _OF_INTS else as_double)
pure(*members(cmath, types.BuiltinFunctionType).values())
_floats(math.fsum)


def _dist(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    rows = [[_converted(space, item.force(), as_double) for item in space.unpack(arg)] for arg in args]
    return space.unmodelled(math.dist, [space.new_tuple(row) for row in rows], kwargs)


pure(math.dist)
register(math.dist, _dist)


def _rounding(host: Host, method: str) -> None:
    """`floor`, `ceil` and `trunc` ask the operand's own method."""

    def model(space: Space, value: Value, /) -> Value:
        value = value.force()
        if literal(value):
            return space.run_known(host, [value])
        slot = space.special(value, method)
        if slot is not None:
            return space.call(slot, [value], {})
        if host is math.trunc:
            raise space.error(TypeError, f"type {value.type_name(space)} doesn't define __trunc__ method")
        return model(space, as_double(space, value))

    builtin(host)(model)


for _host, _method in ((math.floor, "__floor__"), (math.ceil, "__ceil__"), (math.trunc, "__trunc__")):
    _rounding(_host, _method)


@builtin(math.prod)
def prod(space: Space, iterable: Value, /, *, start: Value = Constant(1)) -> Value:  # noqa: B008 (immutable)
    result = start
    for item in space.iterate(iterable):
        result = space.binary("*", result, item)
    return result


def _sumprod(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return space.unmodelled(vars(math)["sumprod"], [space.new_list(space.unpack(arg)) for arg in args], kwargs)


if "sumprod" in vars(math):
    pure(vars(math)["sumprod"])
    register(vars(math)["sumprod"], _sumprod)
