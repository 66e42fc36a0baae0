"""Functions of which the program says that they always give the same (`assume_constant_result`).

The function is called for real, once a trace. What it is given are the objects themselves, which it may look at:

    @stator.assume_constant_result
    def width(config, x):
        return config.width if x[0] > 0 else 0

The program vouches for what they are like: of an object is guarded which one it is, and of a tensor, which is another
in each call, nothing. Its result is the trace's from then on, be it an object that could not be made again.
"""

from __future__ import annotations

from stator import errors
from stator.space.host_types import Host, HostCallable
from stator.space.protocol import Handler
from stator.space.space import Space
from stator.space.value import NotKnown, Unsupported, Value

__all__ = ["constant_result"]


def constant_result(function: HostCallable) -> Handler:
    """The model of a function that is marked so."""

    def call(space: Space, args: list[Value], kwargs: dict[str, Value]) -> Value:
        given = [_as_it_is(space, function, arg.force()) for arg in args]
        named = {name: _as_it_is(space, function, arg.force()) for name, arg in kwargs.items()}
        result = space.run_for_real(function, given, named)
        try:
            return space.fresh(result)
        except Unsupported:
            return space.existing(result)

    return call


def _as_it_is(space: Space, function: HostCallable, value: Value) -> Host:
    """The object that the function is given: a known one, or one that existed before and that nobody has changed."""
    try:
        return value.as_host(space)
    except NotKnown:
        if space.trace.effects.matter():
            raise Unsupported(errors.PendingSideEffects(function.__qualname__)) from None
    try:
        return value.as_existing(space)
    except NotKnown:
        raise Unsupported(errors.UnknownArgument(function.__qualname__, value.describe())) from None
